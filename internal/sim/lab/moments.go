package lab

// mode says in which of the two runs of a story a moment is told.
type mode uint8

const (
	both    mode = iota
	dropped      // without the rule
	kept         // with the rule
)

// moment is a moment of a story, found by the text of its record.
type moment struct {
	with mode
	at   anchor
	text string // two sentences: what one sees, and why it matters
}

// moments are those of all stories, in the order in which they come.
var moments = map[string][]moment{
	"two-leaders": {
		{both, "1 logs C4",
			"1 logs the configuration with 5 in it, and counts by it at once. Only 5 gets the entry, for 2, 3 and 4 are " +
				"cut off."},
		{both, "2 leads term 3",
			"2, 3 and 4 elect 2, by the four that they know. 2 has never heard of the change that 1 began."},
		{dropped, "2 logs C5",
			"2 begins a change of its own before any entry of its term has committed. It counts {2,3,4} now, in which 2 " +
				"and 3 are a majority."},
		{kept, "2 refuses",
			"2 refuses: it does not know yet what its predecessors left. Its own first entry must commit first, and " +
				"that needs three of {1,2,3,4}."},
		{dropped, "w1 is acknowledged",
			"A client is told that w1 is safe, on the disks of 2 and 3. Both 1 and 4 know nothing of it."},
		{dropped, "1 leads term 4",
			"1, 4 and 5 are a majority of five, and elect 1. No member of {2,3} was asked, so 1 lacks what they committed."},
		{dropped, "a committed entry differs",
			"Entry 4 is committed twice, with different contents. From here on there are two clusters, and each " +
				"believes that it is the only one."},
		{kept, "w1 is acknowledged", "The members agree on one log again. Whatever was acknowledged is in it."},
	},
	"two-changes": {
		{both, "1 logs C4",
			"1 adds 4, which is a majority of {1,2,3,4} away from being decided. 2 and 3 are cut off and do not hear of it."},
		{dropped, "1 logs C5",
			"1 adds 5 as well, while nobody has decided on 4. Two steps of one voter each are one step of two, and " +
				"majorities before and after need not meet."},
		{kept, "1 refuses",
			"1 refuses the second change as long as the first is not committed. So {1,4,5} never count as a majority of five."},
		{dropped, "w1 is acknowledged",
			"1, 4 and 5 are three of five, so w1 counts as safe. None of them is in the majority that 2 and 3 form."},
		{both, "2 leads term 3",
			"2 and 3 are a majority of the three that they know, and elect 2. With the rule in force that is harmless, " +
				"for 1 could commit nothing without one of them."},
		{dropped, "a committed entry differs",
			"Different entries are committed at the same index. The write w1 will be gone, though its client was told " +
				"otherwise."},
	},
	"removed-leader-counts-itself": {
		{both, "1 logs C3",
			"1 logs the configuration without itself, and from here on two of {2,3,4} decide. 1 goes on leading until " +
				"that has committed, without a vote."},
		{both, "a client writes w1",
			"The acknowledgements of 3 and 4 do not arrive, and 1 hears 2 alone. Two of {2,3,4} are needed, and 1 is " +
				"none of the three."},
		{dropped, "w1 is acknowledged",
			"1 counts its own disk in the place of a voter, and with 2 that makes two. The client is told that w1 is " +
				"safe, but only one voter has it."},
		{dropped, "3 leads term 3",
			"3 and 4 are a majority of {2,3,4}, and neither has w1. Nothing forbids them to elect 3."},
		{dropped, "a committed entry differs",
			"3 commits another entry where w1 was. An acknowledged write is overwritten."},
		{kept, "w2 is acknowledged",
			"Nothing was acknowledged that only 1 and 2 had. So 3 and 4 could take over, and no client was told " +
				"anything wrong."},
	},
	"union-of-joint": {
		{both, "1 logs J4",
			"J4 is joint: both {1,2,3} and {1,4,5} must agree while it is in force. 2 and 3 have not heard of it."},
		{both, "1 crashes",
			"The leader dies when only 4 and 5 have the change. It comes back at once, with the joint entry on its disk."},
		{dropped, "4 leads term 3",
			"4 has votes of 1, 4 and 5: three of the five in both sets together. Of {1,2,3} it has one, which is no majority."},
		{dropped, "two leaders in one term",
			"2 and 3 are a majority of the old set, and elect 2 in the same term. Two leaders of one term is the first " +
				"thing that Raft rules out."},
		{kept, "2 leads term",
			"4 was not elected, since it had one vote of {1,2,3}. 2 has a majority of those who vote, and is the only leader."},
	},
	"learner-counted": {
		{both, "a client writes w1",
			"1 leads, and only the learners 4 and 5 hear it. They hold w1, but they have no vote."},
		{dropped, "w1 is acknowledged",
			"The learners are counted as if they voted, and three of five have the write. The voters 2 and 3 know " +
				"nothing of it."},
		{both, "2 leads term 3",
			"2 and 3 are two of the three voters, and elect 2. Learners are not asked, so what they hold cannot help."},
		{dropped, "a leader lacks a committed entry",
			"2 leads without w1, which a client believes to be safe. The log that the cluster goes on with has another " +
				"entry in its place."},
		{kept, "w2 is acknowledged",
			"1 never acknowledged w1, so its client still waits. Nothing that was promised is lost."},
	},
	"direct-switch": {
		{dropped, "1 logs C4",
			"1 goes from three voters to five in one entry. {1,4,5} are a majority of the five, and {2,3} are one of " +
				"the three."},
		{kept, "1 logs J4",
			"The entry holds both sets, and both must agree. 1, 4 and 5 are one of {1,2,3} only, so nothing commits " +
				"without 2 or 3."},
		{dropped, "w1 is acknowledged", "1, 4 and 5 have w1, three of five. Its client is told that it is safe."},
		{both, "2 leads term 3",
			"2 and 3 elect 2 by the configuration of three voters. Look whether the majority that 1 counts shares a " +
				"member with this one."},
		{dropped, "a committed entry differs",
			"Two majorities that do not meet decided on the same index. The writes of one side will be dropped."},
		{kept, "w2 is acknowledged",
			"The change is dropped with the log of 1, and w2 is decided by {2,3}. No client was told anything about the " +
				"other log."},
	},
	"joint-leader-dies": {
		{both, "1 logs J4", "J4 begins a change from {1,2,3} to {1,4,5}, and 4 and 5 have it. 2 and 3 have not."},
		{both, "1 crashes", "The leader dies in the middle. The next one must find out whether J4 can count as committed."},
		{both, "4 leads term 3",
			"4 has votes of 1, 4 and 5, and of 1 and 2: a majority of each set. It finds J4 at the end of its log, from " +
				"an earlier term."},
		{dropped, "4 logs C6",
			"4 ends the change at once, before an entry of its own term has committed in the joint configuration. From " +
				"now on {4,5} can decide alone."},
		{kept, "» what 4 logs",
			"4 has to commit an entry of its own term first, by both sets. What it logs reaches 5 alone, so it cannot."},
		{dropped, "w1 is acknowledged", "4 and 5 are two of {1,4,5}, and w1 counts as safe. 2 and 3 still go by {1,2,3}."},
		{dropped, "a leader lacks a committed entry",
			"3 is elected by {1,2,3}, where nobody has the change. It commits other entries at the same indexes."},
		{kept, "3 leads term", "3 is elected by the old set. Nothing had committed under 4, so nothing is lost."},
	},
	"cop": {
		{both, "1 logs J4",
			"COP is one entry with both sets, {1,2,3} and {1,4,5}. It reaches 4 and 5; 2 and 3 are cut off."},
		{dropped, "J4 committed, knows",
			"1 counts {1,4,5} alone and finds COP committed. A majority of the old set would have to know, and only 1 " +
				"of it does."},
		{dropped, "w1 is acknowledged",
			"1 has activated the new configuration, and acknowledges w1 under it. For 2 and 3 nothing has changed."},
		{both, "2 leads term 3",
			"2 and 3 elect 2 by the old set. If the old set had to agree to COP, one of them would know of it."},
		{dropped, "a committed entry differs",
			"Both sides commit at the same index. That is why the old set has to agree, too."},
		{kept, "w2 is acknowledged",
			"COP never committed, so {1,2,3} is still the configuration. w2 is safe, and 1 has promised nothing."},
	},
	"one-log": {
		{both, "the change is done",
			"By joint-early a change is decided as soon as its first entry has committed, and 1 reports that. It is cut " +
				"off before any other member knows."},
		{both, "2 leads term 3",
			"2 has the entry and leads, but cannot tell whether it had committed. The operator, who sees that 1 is " +
				"gone, asks 2 to abort."},
		{dropped, "2 logs C6",
			"2 logs the way back before an entry of its own term has committed. Nothing tells it that the operator has " +
				"had an answer."},
		{dropped, "a change that was done is taken back",
			"The change was reported as done, and now the old configuration holds. The operator may have switched off " +
				"members that vote again."},
		{kept, "2 refuses",
			"2 refuses until an entry of its own term has committed. By then it knows that J4 has committed, and that " +
				"there is no way back."},
		{kept, "the change is settled",
			"A later leader finishes the change. So the first answer was right, and everybody ends in {1,4,5}."},
	},
	"switched": {
		{both, "1 logs J4",
			"J4 holds both sets, and will be followed by no other entry in the experiment. Members note on their disks " +
				"when they know that it has committed."},
		{dropped, "has switched",
			"4 reports that it has switched, and with 1 that is a majority of {1,4,5}. So the change counts as settled, " +
				"and 2 and 3 may be switched off."},
		{both, "1 burns down",
			"Of the new voters, 4 and 5 are left: a majority. 5 has w1, which 4 lacks, and does not know that the " +
				"change has committed."},
		{dropped, "the cluster cannot go on",
			"5 waits for {2,3}, which are gone, and refuses 4, whose log is shorter. 4 cannot win, and 5 does not stand " +
				"by the new set."},
		{kept, "5 leads term",
			"With the rule, votes and their answers say what has committed, so 5 learns it from 4. Then two of {1,4,5} " +
				"are enough."},
	},
	"fast-join": {
		{both, "offers w1",
			"2 offers w1 to all voters at once: three of {1,2,3,4} must have it for an answer in one round trip. Its " +
				"messages are slow, so the offer is on its way for long."},
		{both, "1 logs C4",
			"Meanwhile 5 joins. By the configuration of five, four members must have a write of the fast path."},
		{both, "C4 committed and settled, knows",
			"1, 4 and 5 decided on the change. 3 still counts by the old configuration, and gets the offer."},
		{dropped, "w1 is decided",
			"2 adds up its own record, that of 3 and the answer of 1: three, which was enough by the old count. They " +
				"were given under two configurations."},
		{both, "4 leads term 3",
			"3, 4 and 5 elect 4, a majority of five. A new leader recovers a write if two of its voters have it, and " +
				"only 3 has w1."},
		{dropped, "an acknowledged write is lost",
			"The client of w1 was told that it is safe, and no log has it. Verdicts under different configurations must " +
				"not be added up."},
		{kept, "» now all",
			"Verdicts name their configuration, so 2 could not add them up and did not answer. w1 goes the ordinary way " +
				"once a leader has it."},
	},
	"etcd-12359": {
		{both, "1 logs C4",
			"By this protocol a configuration is in force once it is applied. Until then all count by the old one, {1,2}."},
		{both, "» 1 has told 3",
			"1 knows that the change has committed, and tells 3 alone. 2 has the entry and does not know."},
		{both, "1 burns down",
			"2 and 3 are a majority of {1,2,3}, so the cluster should go on. 2 still counts {1,2}, in which 1 is dead."},
		{dropped, "the cluster cannot go on",
			"2 refuses to elect 3, whose log is shorter, and cannot win itself by {1,2}. Nothing is lost, and nothing " +
				"moves any more."},
		{kept, "C4 committed, knows",
			"3 asks for a vote and says what it knows to be committed. So 2 learns that its own entry is decided, and " +
				"counts by the new configuration."},
		{kept, "2 leads term", "2 has the longer log, and 3 votes for it. The cluster goes on with two of three."},
	},
	"retired-early": {
		{both, "1 logs J4",
			"All voters are replaced in one change: {1,2,3} by {4,5,6}. While J4 is in force a majority of each set " +
				"must agree."},
		{both, "the change is done",
			"1 knows that the change is decided. For all that 4, 5 and 6 know, {1,2,3} are still needed."},
		{dropped, "1: switched off",
			"The operator takes done for finished, and switches off those who leave. They were the only ones who knew " +
				"that nobody needs them."},
		{dropped, "the cluster cannot go on",
			"4, 5 and 6 hold the change and wait for a majority of {1,2,3}. Nobody is left to tell them that it has " +
				"committed."},
		{kept, "the change is settled",
			"Only now enough of the new voters know that the change is in force. From here on those who left may be " +
				"switched off."},
	},
	"abort": {
		{both, "1 logs J4",
			"From here on both {1,2,3} and {1,4,5} must agree. The disks of 4 and 5 hang, so the new set cannot."},
		{both, "a client writes w1",
			"Writes wait, for nothing commits in the joint configuration. All of the old voters are healthy."},
		{dropped, "the cluster cannot go on",
			"Nobody takes the change back, so the cluster waits for two disks that do not come back. Three healthy " +
				"voters cannot help."},
		{kept, "operator asks 1 to abort",
			"The second entry of the change is in no log yet. So majorities of {1,2,3} decide in every configuration " +
				"that can be in use, and 1 may go back."},
		{kept, "w1 is acknowledged",
			"With the old configuration in force again, w1 commits at once. The change can be tried again when the " +
				"disks work."},
	},
}
