"""The answers of systems, judged.

judge_folder  asks the judge that an experiment declares, and stores its verdicts
score         computes the measures from the stored verdicts, and compares the systems
measures      the table of all measures, and RAGAS's
ragchecker    the measures of this paper, as pure functions of verdicts
text_overlap  BLEU, chrF, ROUGE, exact match, token F1
"""
