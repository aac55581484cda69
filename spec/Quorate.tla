------------------------------ MODULE Quorate ------------------------------
(* The log, elections and commits: Raft (Ongaro, "Consensus: Bridging Theory and Practice", 2014, chapter 3), with pre-votes
   that carry commit indexes, and commits that a follower infers (ADR 0013).

   Messages are not modelled one by one. What a leader of term t ever had in its log is history[t]; an append of that
   term may bring any beginning of it to anybody, at any time, in any order, again and again. acked[t][s] is how far s
   acknowledged it. So loss, delay, reordering and duplication need no actions of their own.

   FastPath adds records and exact revisions, Reads adds reads, Reconfig adds changes of one voter, Joint of several at once. *)
EXTENDS Naturals, Sequences, FiniteSets

CONSTANTS
  Server,       \* all members
  Voters,       \* the voters of the first configuration
  None,         \* no member
  MaxTerm,      \* bounds of an instance
  MaxLog,
  MayCampaign   \* pairs <<member, term>>: who may become a candidate (all of them, or a story)

VARIABLES
  term, voted, log,        \* durable
  role, commit, votes,     \* volatile
  history, leader, acked,  \* by term: the leader's log, who leads, who acknowledged how much
  told,                    \* by term: how far its leader knows that it committed
  committed, committedIn   \* ghosts: the longest committed log, and the last term that committed

raftVars == <<term, voted, log, role, commit, votes, history, leader, acked, told, committed, committedIn>>

Terms == 1..MaxTerm
Max(a, b) == IF a > b THEN a ELSE b
Min(a, b) == IF a < b THEN a ELSE b
MaxOf(S) == CHOOSE x \in S : \A y \in S : y <= x
Prefix(l, n) == SubSeq(l, 1, n)
IsPrefix(a, b) == Len(a) <= Len(b) /\ a = Prefix(b, Len(a))

\* The length of the longest common beginning of two logs.
Shared(a, b) == MaxOf({n \in 0..Min(Len(a), Len(b)) : Prefix(a, n) = Prefix(b, n)})

\* Log entries. by and prop mean something only in some kinds.
Entry(kind, prop, rev, t, by) == [kind |-> kind, prop |-> prop, rev |-> rev, term |-> t, by |-> by]
Noop(t) == Entry("noop", None, 0, t, None)

LastTerm(l) == IF l = <<>> THEN 0 ELSE l[Len(l)].term

\* The configuration in force is that of the last configuration entry of the log (ADR 0003); prop holds its voters.
ConfigAt(l) == LET at == {n \in 1..Len(l) : l[n].kind = "config"} IN IF at = {} THEN 0 ELSE MaxOf(at)
VotersOf(l) == IF ConfigAt(l) = 0 THEN Voters ELSE l[ConfigAt(l)].prop
ConfigId(l) == IF ConfigAt(l) = 0 THEN <<0, 0>> ELSE <<ConfigAt(l), l[ConfigAt(l)].term>>
Majority(V) == Cardinality(V) \div 2 + 1
IsQuorum(V, S) == Cardinality(S \cap V) >= Majority(V)

\* One leader of term 1, whose no-op has committed everywhere.
First == CHOOSE s \in Voters : TRUE
RaftInit(first) ==
  /\ term = [s \in Server |-> 1]
  /\ voted = [s \in Server |-> IF s = first THEN s ELSE None]
  /\ log = [s \in Server |-> <<Noop(1)>>]
  /\ role = [s \in Server |-> IF s = first THEN "leader" ELSE "follower"]
  /\ commit = [s \in Server |-> 1]
  /\ votes = [s \in Server |-> {}]
  /\ history = [t \in Terms |-> IF t = 1 THEN <<Noop(1)>> ELSE <<>>]
  /\ leader = [t \in Terms |-> IF t = 1 THEN first ELSE None]
  /\ acked = [t \in Terms |-> [s \in Server |-> IF t = 1 THEN 1 ELSE 0]]
  /\ told = [t \in Terms |-> IF t = 1 THEN 1 ELSE 0]
  /\ committed = <<Noop(1)>>
  /\ committedIn = 1

Open(i) == role[i] = "leader" /\ log[i][commit[i]].term = term[i]

--------------------------------------------------------------------------------
(* Elections (thesis, sections 3.4 and 3.6.1). *)

Stand(i) ==
  /\ role[i] # "leader" /\ term[i] < MaxTerm
  /\ <<i, term[i] + 1>> \in MayCampaign
  /\ term' = [term EXCEPT ![i] = @ + 1]
  /\ voted' = [voted EXCEPT ![i] = i]
  /\ role' = [role EXCEPT ![i] = "candidate"]
  /\ votes' = [votes EXCEPT ![i] = {i}]
  /\ UNCHANGED <<log, commit, history, leader, acked, told, committed, committedIn>>

Campaign(i) == Stand(i)

UpToDate(c, v) ==
  \/ LastTerm(log[c]) > LastTerm(log[v])
  \/ LastTerm(log[c]) = LastTerm(log[v]) /\ Len(log[c]) >= Len(log[v])

\* v hears the request of candidate c. It grants it if it may; else it only learns the term.
Vote(v, c, grants) ==
  /\ v # c /\ role[c] = "candidate"
  /\ \/ term[v] < term[c]
     \/ term[v] = term[c] /\ grants /\ voted[v] = None /\ role[v] = "follower"
  /\ grants => UpToDate(c, v)
  /\ term' = [term EXCEPT ![v] = term[c]]
  /\ role' = [role EXCEPT ![v] = "follower"]
  /\ voted' = [voted EXCEPT ![v] = IF grants THEN c ELSE None]
  /\ votes' = [votes EXCEPT ![c] = IF grants THEN @ \cup {v} ELSE @, ![v] = {}]
  /\ UNCHANGED <<log, commit, history, leader, acked, told, committed, committedIn>>

\* A candidate with the votes of a quorum leads. Entries that it recovers come before its no-op.
Lead(i, recovered) ==
  LET new == log[i] \o recovered \o <<Noop(term[i])>> IN
  /\ role[i] = "candidate" /\ Len(new) <= MaxLog
  /\ role' = [role EXCEPT ![i] = "leader"]
  /\ votes' = [votes EXCEPT ![i] = {}]
  /\ log' = [log EXCEPT ![i] = new]
  /\ history' = [history EXCEPT ![term[i]] = new]
  /\ leader' = [leader EXCEPT ![term[i]] = i]
  /\ acked' = [acked EXCEPT ![term[i]][i] = Len(new)]
  /\ UNCHANGED <<term, voted, commit, told, committed, committedIn>>

Win(i, recovered) == IsQuorum(VotersOf(log[i]), votes[i]) /\ Lead(i, recovered)

--------------------------------------------------------------------------------
(* The log (thesis, sections 3.5 and 3.6.2). *)

LogAppend(i, e) ==
  LET new == log[i] \o <<e>> IN
  /\ role[i] = "leader" /\ Len(new) <= MaxLog
  /\ log' = [log EXCEPT ![i] = new]
  /\ history' = [history EXCEPT ![term[i]] = new]
  /\ acked' = [acked EXCEPT ![term[i]][i] = Len(new)]
  /\ UNCHANGED <<term, voted, role, commit, votes, leader, told, committed, committedIn>>

\* s receives the log of term t up to n, with the leader's commit index or without. Entries below its own commit index are
\* compared like all others; if they differ, that leader is deposed and does not know it, and nothing is acknowledged.
Receive(s, t, n, withCommit) ==
  LET theirs == history[t]
      same == Shared(log[s], theirs)
      new == IF n > same THEN Prefix(theirs, n) ELSE log[s]
      known == IF withCommit THEN Min(n, told[t]) ELSE 0 IN
  /\ leader[t] \notin {None, s} /\ t >= term[s] /\ n \in 1..Len(theirs)
  /\ n > same => same >= commit[s]
  /\ \/ t > term[s] \/ role[s] # "follower" \/ n > acked[t][s] \/ known > commit[s]   \* else nothing is new
  /\ term' = [term EXCEPT ![s] = t]
  /\ voted' = [voted EXCEPT ![s] = IF t > term[s] THEN None ELSE @]
  /\ role' = [role EXCEPT ![s] = "follower"]
  /\ votes' = [votes EXCEPT ![s] = {}]
  /\ log' = [log EXCEPT ![s] = new]
  /\ acked' = [acked EXCEPT ![t][s] = Max(@, n)]
  /\ commit' = [commit EXCEPT ![s] = Max(@, known)]
  /\ UNCHANGED <<history, leader, told, committed, committedIn>>

Holders(t, n) == {s \in Server : acked[t][s] >= n}

Committed(s, n) ==
  /\ commit' = [commit EXCEPT ![s] = n]
  /\ told' = [told EXCEPT ![term[s]] = Max(@, n)]
  /\ committed' = IF n > Len(committed) THEN Prefix(log[s], n) ELSE committed
  /\ committedIn' = Max(committedIn, term[s])
  /\ UNCHANGED <<term, voted, log, role, votes, history, leader, acked>>

\* Only an entry of the own term is committed by counting (thesis, section 3.6.2 and figure 3.7).
Countable(i, n) == role[i] = "leader" /\ n \in (commit[i] + 1)..Len(log[i]) /\ log[i][n].term = term[i]
Commit(i, n) == Countable(i, n) /\ IsQuorum(VotersOf(log[i]), Holders(term[i], n)) /\ Committed(i, n)

\* A follower that proposed an entry counts by itself (ADR 0013), while no change is under way.
Stable(s) == ConfigAt(log[s]) <= commit[s]
Infer(s, n) ==
  /\ role[s] = "follower" /\ leader[term[s]] \notin {None, s} /\ Stable(s)
  /\ n \in (commit[s] + 1)..Min(Len(log[s]), acked[term[s]][s]) /\ log[s][n].term = term[s]
  /\ IsQuorum(VotersOf(log[s]), Holders(term[s], n))
  /\ Committed(s, n)

\* A pre-vote, or its answer, tells a commit index and the term there. It changes nothing else: not the term.
Hint(from, s) ==
  /\ from # s /\ role[from] # "leader"
  /\ commit[from] > commit[s] /\ commit[from] <= Len(log[s])
  /\ log[s][commit[from]].term = log[from][commit[from]].term
  /\ commit' = [commit EXCEPT ![s] = commit[from]]
  /\ UNCHANGED <<term, voted, log, role, votes, history, leader, acked, told, committed, committedIn>>

\* A member falls and starts again; what it knew of commits falls back to what its store had applied.
Restart(s, n) ==
  /\ n <= commit[s]
  /\ role' = [role EXCEPT ![s] = "follower"]
  /\ votes' = [votes EXCEPT ![s] = {}]
  /\ commit' = [commit EXCEPT ![s] = n]
  /\ UNCHANGED <<term, voted, log, history, leader, acked, told, committed, committedIn>>

--------------------------------------------------------------------------------
(* Laws. *)

ElectionSafety == \A i, j \in Server : role[i] = "leader" /\ role[j] = "leader" /\ term[i] = term[j] => i = j

LeaderCompleteness == \A i \in Server : role[i] = "leader" /\ term[i] > committedIn => IsPrefix(committed, log[i])

StateMachineSafety == \A s \in Server : IsPrefix(Prefix(log[s], commit[s]), committed)

LogMatching ==
  \A s \in Server : leader[term[s]] # None /\ role[s] # "leader" =>
    Prefix(log[s], acked[term[s]][s]) = Prefix(history[term[s]], acked[term[s]][s])
=============================================================================
