"""Judges answers and the texts behind them: claims, verdicts, and the measures that follow.

overlap            tokens of any language; BLEU, chrF, ROUGE, exact match, token F1
ragchecker, ragas  the measures of these papers, as pure functions of verdicts
"""
