package lab

import (
	"github.com/quorate/quorate/internal/consensus"
)

// protocolStories are one story for each protocol that changes several voters, and one for a write of the fast path during a
// change.
func protocolStories() []Story {
	return []Story{
		{
			Name: "direct-switch", Title: "from three voters to five in one entry (Raft paper, figure 10)",
			About: []string{
				"1 switches to {1,2,3,4,5} as it logs the entry. {1,4,5} are a majority of the five,",
				"and {2,3}, which have not heard of it, one of the three: two majorities that do not meet.",
			},
			Break: "direct-switch", Expect: []Breach{BreachLostWrite, BreachOverwritten, BreachIncomplete},
			voters: 3, learners: 2, play: playDirectSwitch,
		},
		{
			Name: "joint-leader-dies", Title: "the leader of a joint change dies, and the next one ends it at once (Zeebe)",
			About: []string{
				"{1,2,3} is to become {1,4,5}. 4 is elected by both sets and finds the joint entry, which 2 and 3 do not have.",
				"It logs C(new), and {4,5} commit under that alone. {2,3} elect a leader of their own.",
			},
			Break: "leave-early", Expect: []Breach{BreachLostWrite, BreachOverwritten, BreachIncomplete},
			voters: 3, learners: 2, play: playLeaderDies,
		},
		{
			Name: "cop", Title: "COP counts in the new set alone (ZooKeeper's reconfiguration)",
			About: []string{
				"COP is the one entry that holds both sets, and ACTIVATE the news that it has committed. {1,2,3} is to become",
				"{1,4,5}. 1, 4 and 5 have COP, and 1 activates. Neither 2 nor 3 has heard of it.",
			},
			Break: "incoming-decides", Expect: []Breach{BreachLostWrite, BreachOverwritten, BreachIncomplete},
			voters: 3, learners: 2, play: playCOP,
		},
		{
			Name: "one-log", Title: "a change is done when C(old,new) has committed, and the next leader takes it back",
			About: []string{
				"By joint-early the operator is told when the first entry has committed: only 1 knows that, and is cut off.",
				"2 has the entry, leads, and does not know. The operator, who sees 1 gone, asks it to abort.",
			},
			Break: "change-in-old-term", Expect: []Breach{BreachTakenBack},
			voters: 3, learners: 2, play: playOneLog,
		},
		{
			Name: "switched", Title: "ACTIVATE with no entry after it, and votes that prefer who has switched (experiment)",
			About: []string{
				"{1,2,3} is to become {1,4,5}. 1 and 4 have switched: a majority, and 2 and 3 are switched off. 5 has a longer",
				"log than 4 and does not know that the change has committed. 1 burns down. 5 refuses the shorter log, and",
				"waits for {2,3}.",
			},
			Break: ProtocolSwitched, Expect: []Breach{BreachUnavailable},
			voters: 3, learners: 2, play: playSwitched,
		},
		{
			Name: "fast-join", Title: "a server joins in the middle of a proposal (CURP)",
			About: []string{
				"2 offers w1 under {1,2,3,4}: three of four must have it. Meanwhile 5 joins by way of 1, 4 and 5. 1, 2 and 3",
				"have w1, enough by the old count. By the new one it is not: of {3,4,5}, who elect 4, only 3 has it; two must.",
			},
			Break: "verdicts-of-any-config", Expect: []Breach{BreachLostWrite},
			voters: 4, learners: 1, play: playFastJoin,
		},
	}
}

// twoOfThree replaces 2 and 3 by 4 and 5.
func twoOfThree() []consensus.ChangeStep {
	return []consensus.ChangeStep{
		step(consensus.ChangePromote, 4), step(consensus.ChangePromote, 5),
		step(consensus.ChangeRemove, 2), step(consensus.ChangeRemove, 3),
	}
}

func playDirectSwitch(d *director) {
	d.split([]memberID{1, 4, 5}, []memberID{2, 3})
	d.change(1, consensus.ProtocolJoint, step(consensus.ChangePromote, 4), step(consensus.ChangePromote, 5))
	d.write(1)
	d.rest()
	d.elect(2)
	d.write(2)
	d.rest()
	d.end()
}

func playLeaderDies(d *director) {
	d.split([]memberID{1, 4, 5}, []memberID{2, 3})
	d.change(1, consensus.ProtocolJoint, twoOfThree()...)
	d.moment(2)
	d.member(1).crash("1 crashes")
	d.member(1).restart()
	d.split([]memberID{1, 2, 4, 5}, []memberID{3})
	d.campaign(4)
	d.split([]memberID{4, 5}, []memberID{1, 2, 3})
	d.say("what 4 logs reaches 5 alone")
	d.write(4)
	d.rest()
	d.elect(3)
	d.write(3)
	d.rest()
	d.end()
}

func playCOP(d *director) {
	d.split([]memberID{1, 4, 5}, []memberID{2, 3})
	d.change(1, consensus.ProtocolActivate, twoOfThree()...)
	d.rest()
	d.write(1)
	d.rest()
	d.elect(2)
	d.write(2)
	d.rest()
	d.end()
}

func playOneLog(d *director) {
	d.operator.begin(consensus.ProtocolJointEarly, []request{{
		steps: twoOfThree(), target: []memberID{1, 4, 5}, leaving: []memberID{2, 3},
	}})
	d.runUntil(12*d.delay, func() bool { return d.operator.doneAt > 0 })
	d.split([]memberID{1}, []memberID{2, 3, 4, 5})
	d.rest()
	d.campaign(2)
	d.abort(2)
	d.rest()
	d.end()
}

func playSwitched(d *director) {
	d.operator.begin(consensus.ProtocolActivate, []request{{
		steps: twoOfThree(), target: []memberID{1, 4, 5}, leaving: []memberID{2, 3},
	}})
	d.moment(1.2)
	d.split([]memberID{1, 5}, []memberID{2, 3, 4})
	d.write(1)
	d.heal()
	d.say("the write reaches 5 alone")
	d.moment(1.6)
	d.split([]memberID{1, 2, 3, 4}, []memberID{5})
	d.runUntil(3*d.delay, func() bool { return d.operator.phase == phaseSettled })
	d.split([]memberID{2, 3, 4}, []memberID{5})
	d.member(1).switchOff("1 burns down")
	d.runFor(5 * d.delay) // the removed members may be switched off by now
	d.heal()
	d.tick(2*electionTicks, 2, 3, 4, 5)
	d.end()
}

func playFastJoin(d *director) {
	d.clients.fast = true
	d.net.lagging, d.net.noConfig = []memberID{2}, []memberID{3}
	d.say("messages from and to 2 take ten times as long; the change does not reach 3")
	d.write(2)
	d.moment(0.5)
	d.change(1, consensus.ProtocolSingle, step(consensus.ChangePromote, 5))
	d.runFor(8 * d.delay)
	d.split([]memberID{1, 2, 3}, []memberID{4, 5})
	d.runFor(18 * d.delay)
	d.member(1).crash("1 crashes")
	d.split([]memberID{2}, []memberID{3, 4, 5})
	d.net.lagging, d.net.noConfig = nil, nil
	d.elect(4)
	d.end()
}
