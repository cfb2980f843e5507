"""Words of English that the rule-based planner knows; data, no rules."""

from __future__ import annotations

VERBS = frozenset(
    """
    accept activate adapt add adjust advise allocate allow alter analyse analyze announce answer append apply
    approve archive arrange ask assemble assess assign attach authorise authorize award bake begin bill bring
    broadcast build buy calculate call cancel capture categorise categorize check choose clarify classify clean
    cleanse clone close collect combine come commit compare compile compose compress compute configure confirm
    connect consider consolidate construct convert copy correct create crop decide decode decompress decrypt deduct
    define delete deliver deploy derive describe determine diagnose differentiate disable discard disconnect dismiss
    dispatch divide download draw drop duplicate edit eject email enable encode encrypt enlarge enrol enroll ensure
    enter erase establish estimate evaluate examine execute expand explain export express extend extract fetch
    figure file fill filter find finish fix flag flip follow format forward gather generate get give go grab grant
    guess handle help hide identify ignore illustrate import improve include increase index inform initialise
    initialize insert inspect install integrate interpret introduce investigate invite invoice issue join keep kill
    know launch let list load locate lock log look lower mail make manage map mark measure merge message migrate
    minify modify monitor move multiply mute name navigate normalise normalize note notify obtain offer open
    optimise optimize order organise organize output paint parse paste pause pay perform pick ping place plan play
    plot populate post predict prepare present preview print prioritise prioritize process produce profile prove
    provide publish pull purchase purge push put query quote raise rank rate read rebase recalculate receive
    recommend record redact reduce refactor refresh refund register reindex reject release reload remember remind
    remove rename render renew reopen reorder repair repeat replace reply report request reschedule reserve reset
    resize resolve respond restart restore resume retrieve return reverse revert review revise rewrite rotate round
    run save scale scan schedule score scrape search see select sell send separate serve set share ship show shuffle
    shrink sign simplify simulate sketch skip snap solve sort split stage standardise standardize start stop store
    stream study submit subscribe subtract suggest sum summarise summarize swap sync synchronise synchronize tabulate
    tag take tally tell terminate test text total trace track train transcribe transfer transform translate transpose
    trigger trim truncate try turn uninstall unlock unpack unzip update upgrade upload use validate verify view
    visualise visualize visit wait warn watch withdraw work write zip
    knead preheat whisk chop boil fry brew stir pour season serve cook slice bake wash iron mow plant water feed
    """.split()
)
"""Verbs that can open an order, base form."""

NOUN_OR_VERB = frozenset(
    """
    answer bill book call change chart check clean close commit copy count cost display document
    drop email estimate export file filter finish fix flag follow format graph group help import index invoice iron
    issue join list lock log look mail map mark measure message move name note offer open order output plan plant
    plot post present preview price print process profile pull purchase push query quote rank rate record refund
    release rename repair repeat reply report request reset review round run scale schedule score search
    season separate set share ship show sign sketch slice snap sort split stage start stop store stream study sum
    swap tag test text total trace track train transfer trigger trim try turn update upgrade upload use
    view visit wait watch water work zip
    """.split()
)
"""Words that open an order only when an object follows: "email Ann", not "email and phone"."""

CONSUMING = frozenset(
    """
    add append archive attach back commit copy deliver dispatch dump email enter export file forward insert keep log
    mail message note output post present print publish put push record report save send share ship store submit
    summarise summarize text upload write
    """.split()
)
"""Verbs whose object may be what an earlier step found."""

RESULT_NOUNS = frozenset(
    """
    answer answers average calculation conversion content contents count data difference figure figures file finding
    findings list lines mean median minutes number numbers outcome outcomes output outputs quotient product reply
    report response responses result results rows sum summary text total translation transcript value values
    """.split()
)
"""Nouns for what a step yields."""

FUNCTION_WORDS = frozenset(
    """
    a about above after against all also an and any are as at be because been before below between both but by can
    could did do does during each either else every few for from had has have he her here hers him his how i if in
    into is it its just like many may me might mine more most much must my near neither no nor not of off on one only
    onto or other our out over own per please same shall she should since so some such than that the their them then
    there these they this those through to too under until up upon us via was we were what when where whether which
    while who whom whose why will with within without would you your
    """.split()
)

NOT_VERBS = FUNCTION_WORDS | frozenset(
    """
    today tomorrow yesterday morning evening first second third last next previous two three four five six seven
    eight nine ten new old good bad best worst january february march april may june july august september october
    november december monday tuesday wednesday thursday friday saturday sunday thanks thank hello hi hey
    """.split()
)

SUBORDINATE = frozenset(
    """
    after although as assuming at because before by during for from given if in inside on once provided since though
    unless until using when whenever where while with within without
    """.split()
)
"""Openers of a phrase that is no order by itself: "For the file a.txt, ..."."""

PLEASANTRIES = frozenset(
    {"hello", "hi", "hey", "thanks", "thank you", "many thanks", "please", "good morning", "cheers", "ok", "okay"}
)

PARTICLES = frozenset({"up", "down", "out", "off", "on", "over", "back", "away", "in", "through"})
