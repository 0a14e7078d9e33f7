"""Which language are these texts in? Asked only to propose a stemmer and models, so that none is the safe answer."""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping
from functools import cache
from types import MappingProxyType

FUNCTION_WORDS: Mapping[str, frozenset[str]] = MappingProxyType(
    {
        language: frozenset(words.split())
        for language, words in {
            "arabic": "في من على إلى أن هذا هذه التي الذي عن مع ما لا كان ذلك بين",
            "armenian": "և է են որ մեջ համար հետ այս ու չի էր նաև կամ ինչ",
            "basque": "eta da ez dira izan bat baina edo zen hau dute egin ere dago",
            "bulgarian": "и на в се за да от не с са по че е като до при ще но или",
            "catalan": "el la els les de del i que en amb per un una és són aquest dels al",
            "czech": "a v na je se že s z do o to i pro jako jsou ale nebo jak by není k po si",
            "danish": "og i at det er en den til på der som med ikke af for et har jeg",
            "dutch": "de het een van en in is dat op te zijn niet met voor die aan er ook",
            "english": "the of and to in is that for it with as was on are by this be you your how",
            "esperanto": "la de kaj en estas al ne por ke kun pri el ĝi kiu sed oni aŭ",
            "estonian": "ja on ei et see oma kui ka või mis kes aga oli ning seda saab nii",
            "finnish": "ja on ei että se oli ovat joka mutta kun hän myös tai niin kuin ole",
            "french": "le la les de des du et un une est que dans pour qui pas sur au par en avec",
            "german": "der die das und ist nicht ein eine zu den mit von für auf dem sich des im auch",
            "greek": "και το να του της η ο με για στο που είναι από την τα δεν στην τη",
            "hindi": "है के में की का से और को पर यह हैं ने भी था नहीं कि एक",
            "hungarian": "a az és hogy nem egy is van meg volt de ez csak ha mint vagy azt",
            "indonesian": "yang dan di dari untuk dengan ini itu pada adalah tidak dalam akan ke oleh",
            "irish": "agus an na ar is go le ag do sin bhí tá mar seo ach níl bhfuil",
            "italian": "il la di che e un una per non è con del della si sono le gli da nel come",
            "lithuanian": "ir yra kad į su iš tai kaip bet ar buvo nuo apie už prie jis taip",
            "malay": "yang dan di untuk dengan ini itu tidak dalam akan ke oleh boleh anda ialah atau pada",
            "marathi": "आहे आणि या हे की ते व तर नाही होते आहेत मध्ये करून एक साठी",
            "nepali": "छ र को मा छन् लाई पनि यो भएको गर्न हुन् ले थियो छैन भने",
            "norwegian": "og i det er på som en av at for til med ikke har de et jeg den ikkje",
            "persian": "و در به از که این را با است برای آن یک می تا بر هم شده خود",
            "polish": "i w na nie się z do że to jest o jak za po co od czy dla przez są oraz",
            "portuguese": "o a de que e do da em um uma para não com os as no na por mais é",
            "romanian": "și de la în a cu o pe că nu este un din care se pentru mai sunt",
            "russian": "и в не на что с как это по для из от но он же у к бы так",
            "serbian": "и у је на да се за са су од који није као што ће то би",
            "spanish": "el la los las de del y que en un una es por con para no se su al como",
            "swedish": "och i att det är en som på för med den av inte till har ett om jag",
            "tamil": "என்று ஒரு மற்றும் இந்த அந்த என இது உள்ள அது இல்லை என்ன இருந்து",
            "turkish": "ve bir bu da için de ile çok ne olarak gibi daha en var ama değil mi",
            "ukrainian": "і в на не що з як це у до та за від для він є але про або ні й",
            "urdu": "کے کی میں ہے اور سے کا کو پر یہ نے بھی نہیں ہیں کہ ایک",
            "yiddish": "און די דער צו איז אין פון נישט דאס מיט האט וואס אויף",
        }.items()
    }
)
"""Frequent function words of the languages that Snowball stems, and of the kin that they would be taken for."""
UNSTEMMED = frozenset({"bulgarian", "malay", "marathi", "ukrainian", "urdu"})
"""Here to be told apart: PyStemmer has no stemmer for them."""
ENOUGH = 0.06
"""The share of a text's words that function words take at least; running text has 0.2 to 0.5."""
AHEAD = 1.3
"""How many times as many the next language may not have: kin share words."""

LONGEST = 20
"""Letters after which a run without a space counts as several words: it is no script that puts spaces between them."""


def language_of(texts: Iterable[str]) -> str:
    """Name the language of some texts as Snowball does; "" where it is none of the list, or not clear.

    >>> language_of(["Der Vertrag ist nicht gültig, und die Frist ist mit dem Tag des Briefes vorbei."])
    'german'
    >>> language_of(["休暇は一年に二十五日あります。"])
    ''
    """
    counts: Counter[str] = Counter()
    languages, words = _languages(), 0.0
    for text in texts:
        for word in unicodedata.normalize("NFC", text).lower().split():
            bare = word.strip("\"'.,;:!?()[]«»„“”…।،؟·—–-*#`")
            words += max(1.0, len(bare) / LONGEST) if bare else 0.0
            counts.update(languages.get(bare, ()))
    (first, most), (_, second) = [*counts.most_common(2), ("", 0), ("", 0)][:2]
    return first if most >= ENOUGH * words and most >= AHEAD * second and most else ""


@cache
def _languages() -> Mapping[str, list[str]]:
    """Function word -> the languages that have it, in the order of the list."""
    of: dict[str, list[str]] = {}
    for language, words in FUNCTION_WORDS.items():
        for word in words:
            of.setdefault(word, []).append(language)
    return of
