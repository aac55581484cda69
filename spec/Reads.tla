------------------------------- MODULE Reads -------------------------------
(* Linearizable reads without a log entry (thesis, section 6.4). A write may have been answered before its leader knows
   that it committed, so the index is the leader's last one (ADR 0002). Two ways confirm it: the leader, by a quorum that is
   still in its term; or a majority without the leader (PQR: Charapko et al., HotStorage 2019), none of which holds records.

   ReadRule = "ours" is that. "unchecked" adds the way that was shipped until November 2026: the leader's index, not
   confirmed, is served as soon as the reader's own commit index reaches it; "checked" compares the last entry's term, too. *)
EXTENDS FastPath

CONSTANTS ReadRule,   \* "ours", "unchecked", "checked"
          ReadIndex,  \* "last"; "commit" is plain Raft's index (a mutant)
          Readers     \* members that may read

VARIABLE read

NoRead == [stage |-> "none"]
readVars == <<vars, read>>

Ask(s) ==
  /\ s \in Readers /\ read = NoRead /\ leader[term[s]] # None
  /\ role[s] # "candidate" /\ (leader[term[s]] = s => role[s] = "leader")
  /\ \E p \in Proposal : done[p] # 0
  /\ read' = [stage |-> "asked", reader |-> s, term |-> term[s], leader |-> leader[term[s]], taken |-> 0, index |-> 0,
              last |-> 0, echoes |-> {}, given |-> FALSE, replies |-> {}, must |-> {p \in Proposal : done[p] # 0}]
  /\ UNCHANGED vars

Asked == read.stage = "asked"
StillAsked == Asked /\ term[read.reader] = read.term   \* a reader whose term changes gives up

\* The leader takes the index. Whoever asks counts as an echo: it had voted in no later term.
Take ==
  /\ StillAsked /\ read.taken = 0
  /\ LET l == read.leader IN
     /\ role[l] = "leader"
     /\ read' = [read EXCEPT !.taken = term[l], !.last = LastTerm(log[l]),
                 !.index = IF ReadIndex = "commit" THEN commit[l] ELSE Len(log[l]),
                 !.echoes = {l} \cup IF read.term <= term[l] THEN {read.reader} ELSE {}]
  /\ UNCHANGED vars

Echo(s) ==
  /\ StillAsked /\ read.taken # 0 /\ term[s] = read.taken /\ s \notin read.echoes
  /\ read' = [read EXCEPT !.echoes = @ \cup {s}]
  /\ UNCHANGED vars

Ready(index) == read' = [read EXCEPT !.stage = "ready", !.index = index] /\ UNCHANGED vars

\* The leader hands the index out once a quorum echoed and it has committed so far in its term.
Hand ==
  /\ StillAsked /\ read.taken # 0
  /\ LET l == read.leader IN
     /\ role[l] = "leader" /\ term[l] = read.taken /\ Open(l) /\ commit[l] >= read.index
     /\ IsQuorum(VotersOf(log[l]), read.echoes)
  /\ Ready(read.index)

\* A voter answers the reader: its term, how far its log goes, and whether that is all it knows.
Reply(s) ==
  /\ StillAsked /\ s # read.reader /\ ~\E r \in read.replies : r.from = s
  /\ read' = [read EXCEPT !.replies = @ \cup {[from |-> s, term |-> term[s], last |-> Len(log[s]),
                                               all |-> pool[s] = {} /\ Stable(s), id |-> ConfigId(log[s])]}]
  /\ UNCHANGED vars

\* A majority, the reader among it, that holds nothing but its logs: the farthest of them is the index.
ByMajority ==
  LET s == read.reader IN
  /\ StillAsked /\ role[s] = "follower" /\ pool[s] = {} /\ Stable(s) /\ s \in VotersOf(log[s])
  /\ \E R \in SUBSET {r \in read.replies : r.all /\ r.term <= term[s] /\ r.id = ConfigId(log[s])} :
       LET index == MaxOf({Len(log[s])} \cup {r.last : r \in R}) IN
       /\ IsQuorum(VotersOf(log[s]), {s} \cup {r.from : r \in R})
       /\ index <= commit[s]
       /\ Ready(index)

\* The way that is gone: the reader confirms the leader's index by itself.
Word ==
  /\ ReadRule # "ours" /\ StillAsked /\ read.taken = read.term /\ ~read.given /\ role[read.reader] = "follower"
  /\ read' = [read EXCEPT !.given = TRUE]
  /\ UNCHANGED vars
ByWord ==
  LET s == read.reader IN
  /\ StillAsked /\ read.given /\ commit[s] >= read.index
  /\ IsQuorum(VotersOf(log[s]), {s, read.leader} \cup {r.from : r \in {x \in read.replies : x.term <= term[s]}})
  /\ ReadRule = "checked" => log[s][read.index].term = read.last
  /\ Ready(read.index)

\* What the read showed stays in read, for the law.
Serve ==
  /\ read.stage = "ready" /\ applied[read.reader] >= read.index
  /\ read' = [stage |-> "served", must |-> read.must, rows |-> StoreAt(log[read.reader], applied[read.reader]).row]
  /\ UNCHANGED vars

GiveUp ==
  /\ read.stage = "asked" /\ term[read.reader] # read.term
  /\ read' = [stage |-> "given up"]
  /\ UNCHANGED vars

ReadNext ==
  \/ FastNext /\ UNCHANGED read
  \/ \E s \in Server : Ask(s) \/ (Asked /\ (Echo(s) \/ Reply(s)))
  \/ Asked /\ (Take \/ Hand \/ ByMajority \/ Word \/ ByWord)
  \/ Serve \/ GiveUp

\* L6: a linearizable read shows every proposal that was reported before it was invoked.
L6 == read.stage = "served" => \A p \in read.must : read.rows[p] = done[p]
=============================================================================
