"""The answers of systems, judged.

overlap          tokens of any language; BLEU, chrF, ROUGE, exact match, token F1
ragchecker       the measures of this paper, as pure functions of verdicts
answer_measures  RAGAS's, and the table of all
"""
