"""The function words of English: articles, pronouns, prepositions and the like.

They occur in every sentence, so that their repetition says little about a text.
"""

from __future__ import annotations

FUNCTION_WORDS = frozenset(
    """
    a an the this that these those each every either neither both all some any no such what which
    whose i me my mine myself we us our ours ourselves you your yours yourself yourselves he him his
    himself she her hers herself it its itself they them their theirs themselves who whom one ones
    somebody someone something anybody anyone anything nobody none nothing everybody everyone
    everything other others another
    about above across after against along amid among around as at before behind below beneath
    beside besides between beyond by despite down during except for from in inside into like near of
    off on onto out outside over past per since than through throughout till to toward towards under
    underneath until up upon via with within without
    and or but nor so yet if unless because although though while whereas whether when where why how
    be am is are was were been being have has had having do does did doing done will would shall
    should can could may might must ought ca wo
    not n't never there here then now too very also just only even still again ever
    's 're 've 'll 'd 'm ’s ’re ’ve ’ll ’d ’m n’t s t
    """.split()
)
"""Function words in lower case, as the tokenizer splits them."""
