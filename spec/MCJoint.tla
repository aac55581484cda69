------------------------------- MODULE MCJoint -------------------------------
(* The instances of module Joint that TLC checks: see README.md. *)
EXTENDS Joint

CONSTANTS a, b, c, d, e

Pair == {a, b}
OtherPair == {a, c}
Three == {a, b, c}
Four == {a, b, c, d}
Five == {a, b, c, d, e}
Third == {a, b, d}   \* of three voters one is replaced
Most == {a, d, e}    \* two of three are
Anybody == Server \X Terms

(* A story: the leader is lost, and so are the newcomers. Leader a of term 1 has committed C(old,new), from a, b, c to a, d, e:
   b and d have it, and a client may have been told. From here on b and c, two of three old voters, are all that is up. *)
GoneLog == <<Noop(1), Entry("both", None, 0, 1, None)>>
InitGone ==
  /\ term = [s \in Server |-> 1]
  /\ voted = [s \in Server |-> IF s = a THEN a ELSE None]
  /\ log = [s \in Server |-> IF s \in {a, b, d} THEN GoneLog ELSE <<Noop(1)>>]
  /\ role = [s \in Server |-> IF s = a THEN "leader" ELSE "follower"]
  /\ commit = [s \in Server |-> IF s = a THEN 2 ELSE 1]
  /\ votes = [s \in Server |-> {}]
  /\ history = [t \in Terms |-> IF t = 1 THEN GoneLog ELSE <<>>]
  /\ leader = [t \in Terms |-> IF t = 1 THEN a ELSE None]
  /\ acked = [t \in Terms |-> [s \in Server |-> IF t = 1 THEN Len(log[s]) ELSE 0]]
  /\ told = [t \in Terms |-> IF t = 1 THEN 2 ELSE 0]
  /\ committed = GoneLog /\ committedIn = 1
  /\ store = [s \in Server |-> 1]
  /\ decided = TRUE
NextGone ==
  \/ \E i \in {b, c} :
       JointCampaign(i) \/ JointWin(i) \/ JointCommit(i) \/ Begin(i) \/ End(i) \/ TakeBack(i)
  \/ \E v, x \in {b, c} : Vote(v, x, TRUE) /\ UNCHANGED jointVars
  \/ \E s \in {b, c}, t \in Terms, n \in 1..MaxLog : JointReceive(s, t, n)
\* They wait for one of the others, or for an operator's word.
NobodyElected == \A t \in 2..MaxTerm : leader[t] = None
=============================================================================
