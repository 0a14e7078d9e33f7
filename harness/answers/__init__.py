"""What retrieved texts are worth to an answer: claims, verdicts on them, and the measures that follow.

overlap            tokens of any language; BLEU, chrF, ROUGE, exact match, token F1
ragchecker, ragas  the measures of those papers, as pure functions of verdicts
"""
