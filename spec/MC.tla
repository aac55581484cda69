--------------------------------- MODULE MC ---------------------------------
(* The instances that TLC checks: see README.md for how, and how large each is. *)
EXTENDS Reads, Reconfig, TLC

CONSTANTS a, b, c, d, e, p, q, r

ThreeServers == {a, b, c}
FourServers == {a, b, c, d}
FiveServers == {a, b, c, d, e}
OneKey == [x \in Proposal |-> {"k"}]
OwnKeys == [x \in Proposal |-> {x}]
Anybody == Server \X Terms
Symmetry == Permutations(Server \ {First})

\* The fast path and the log, without reads and changes.
InitFast == RaftInit(First) /\ FastInit /\ read = NoRead
NextFast == FastNext /\ UNCHANGED read

\* Reads.
NextReads == ReadNext
NextReadsRestarts == ReadNext \/ \E s \in Server : FastRestart(s, 1) /\ UNCHANGED read

\* Changes, without the fast path and reads; appends carry the commit index, and nobody infers or hints.
NextReconfig ==
  /\ \/ \E i \in Server : FastCampaign(i) \/ FastWin(i)
     \/ \E v, x \in Server, grants \in BOOLEAN : FastVote(v, x, grants)
     \/ \E s \in Server, t \in Terms, n \in 1..MaxLog : FastReceive(s, t, n, TRUE)
     \/ \E s \in Server, n \in 1..MaxLog : Commit(s, n) /\ UNCHANGED fastVars
     \/ \E i \in Server, W \in Targets : Change(i, W)
  /\ UNCHANGED read
ReconfigTargets == {{a, b, c}, {b, c, d}, {a, b}, {a}}
ReconfigCampaigns == {<<d, 2>>, <<a, 3>>}

(* A story: the stale read of November 2026. With five voters the search would not get that deep from the beginning, so it
   begins in the middle. Leader a of term 1 has two slow entries that only b got. Proposal r, on another key, was decided at
   revision 4: a had logged it, c, d and e held its record. Then c was elected in term 2 by d and e and took r over; a and b
   have only heard of that term. From here on a may be elected in term 3, by d and e. *)
StoryAttempt(x, rev) == [prop |-> x, rev |-> rev, term |-> 1, id |-> <<0, 0>>]
StoryLog == <<Noop(1), Entry("slow", p, 0, 1, None), Entry("slow", q, 0, 1, None)>>
FirstLog == StoryLog \o <<Entry("exact", r, 4, 1, a)>>
SecondLog == <<Noop(1), Entry("exact", r, 4, 2, None), Noop(2)>>
InitStory ==
  LET w == StoryAttempt(r, 4) IN
  /\ term = [s \in Server |-> 2]
  /\ voted = [s \in Server |-> IF s \in {c, d, e} THEN c ELSE None]
  /\ log = [s \in Server |-> CASE s = a -> FirstLog [] s = b -> StoryLog [] s = c -> SecondLog [] OTHER -> <<Noop(1)>>]
  /\ role = [s \in Server |-> IF s = c THEN "leader" ELSE "follower"]
  /\ commit = [s \in Server |-> 1]
  /\ votes = [s \in Server |-> {}]
  /\ history = [t \in Terms |-> CASE t = 1 -> FirstLog [] t = 2 -> SecondLog [] OTHER -> <<>>]
  /\ leader = [t \in Terms |-> CASE t = 1 -> a [] t = 2 -> c [] OTHER -> None]
  /\ acked = [t \in Terms |-> [s \in Server |-> IF t = 1 THEN Shared(log[s], FirstLog) ELSE IF t = 2 /\ s = c THEN 3 ELSE 0]]
  /\ told = [t \in Terms |-> IF t = 1 THEN 1 ELSE 0]
  /\ committed = <<Noop(1)>> /\ committedIn = 1
  /\ applied = [s \in Server |-> 1]
  /\ pool = [s \in Server |-> IF s \in {c, d, e} THEN {w} ELSE {}]
  /\ held = [x \in Server |-> [y \in Server |-> {}]]
  /\ attempts = {StoryAttempt(p, 2), StoryAttempt(q, 3), w}
  /\ accepted = {<<w, s>> : s \in {c, d, e}}
  /\ fast = {<<w, a>>}
  /\ done = [x \in Proposal |-> IF x = r THEN 4 ELSE 0]
  /\ floor = [x \in Proposal |-> 0]
  /\ read = NoRead
StoryCampaigns == {<<a, 3>>}
\* To keep the story small nothing new is proposed, b alone reads, and b hears of term 3 only by pre-votes.
StoryNext ==
  \/ (FastCampaign(a) \/ (Cardinality(votes[a]) = 3 /\ FastWin(a))) /\ UNCHANGED read
  \/ \E v \in {d, e} : FastVote(v, a, TRUE) /\ UNCHANGED read
  \/ \E s \in {d, e}, n \in {3, 5} : FastReceive(s, 3, n, TRUE) /\ UNCHANGED read
  \/ Commit(a, 5) /\ UNCHANGED <<fastVars, read>>
  \/ \E s \in {d, e} : Hint(s, b) /\ UNCHANGED <<fastVars, read>>
  \/ Apply(b, commit[b]) /\ UNCHANGED read
  \/ Ask(b)
  \/ Asked /\ ((\E s \in {d, e} : Echo(s) \/ Reply(s)) \/ Take \/ Hand \/ ByMajority \/ Word \/ ByWord)
  \/ Serve \/ GiveUp
=============================================================================
