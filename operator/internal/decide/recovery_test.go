package decide_test

import (
	"cmp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quorate/quorate/operator/internal/decide"
)

// accepts is a consent to the loss that is there, at a revision.
func accepts(o *decide.Observed, revision int64) *decide.Consent {
	return &decide.Consent{Revision: revision, Loss: decide.LossOf(o).ID}
}

// five lets m1 be of five voters, of which m4 answers, too, on a claim that was deleted.
func five(o *decide.Observed) {
	names := []string{"m1", "m2", "m3", "m4", "m5"}
	o.Answers[0].Voters, o.Answers[0].Members = names, names
	o.Answers = append(o.Answers, decide.Answer{Member: "m4", Index: 80, Revision: 60, Voters: names, Members: names})
	o.Claims = append(o.Claims, decide.Claim{Member: "m4", Used: true, Leaving: true})
	o.Pods = append(o.Pods, decide.Pod{Member: "m4", Template: "a", Running: true})
}

// Ensure that a majority that is lost is given up only with a consent to the loss that is reported, once, and that every voter that may
// come back is waited for.
func TestNext_quorumLoss(t *testing.T) {
	consent := func(revision int64) func(o *decide.Observed) {
		return func(o *decide.Observed) {
			o.Want.Consent, o.Kept.Reported = accepts(o, revision), accepts(o, 70)
		}
	}
	for _, row := range []struct {
		name string
		set  func(o *decide.Observed)
		kind decide.Kind
		why  string
	}{
		{"without a consent", func(*decide.Observed) {}, decide.Wait, "at revision 70"},
		{"without a consent, and nodes are lost", func(*decide.Observed) {}, decide.Wait, ". m2: its node is not ready, or gone"},
		{"without a consent, and no node takes a voter whose claim is there", func(o *decide.Observed) {
			o.Pods[0].NodeLost, o.Pods[0].Homeless, o.Pods[0].Waits = false, true, "0/2 nodes are available"
		}, decide.Wait, "No node takes [m3], whose claims are there and are not compared: make room, or take podAntiAffinity: Required out, " +
			"before you accept. m3: 0/2 nodes are available"},
		{"with one", consent(70), decide.Recover, "m1"},
		{"with one to a greater loss, as an older one that is applied again", consent(10), decide.Wait, "which is another one"},
		{"with one to less than is lost", consent(71), decide.Wait, "which is another one"},
		{"with one that is void", func(o *decide.Observed) {
			consent(70)(o)
			o.Kept.VoidConsent = o.Want.Consent
		}, decide.Wait, "is void: see status.voidedConsent"},
		{"with one that was there before the loss was reported", func(o *decide.Observed) {
			consent(70)(o)
			o.Kept.Reported = nil
		}, decide.VoidConsent, "before this loss was reported"},
		{"with one to a loss that is not reported", func(o *decide.Observed) {
			consent(70)(o)
			o.Kept.Reported.Loss = "another"
		}, decide.Wait, "reports that first"},
		{"with one to another loss of the same revision", func(o *decide.Observed) {
			consent(70)(o)
			o.Pods[0].Life = "its node was ready meanwhile"
		}, decide.Wait, "which is another one"},
		{"the survivor's claim was deleted", func(o *decide.Observed) {
			consent(70)(o)
			o.Claims[2].Leaving = true
		}, decide.Wait, "its data go once its pod stops"},
		{"a member that an earlier recovery left out answers alone", func(o *decide.Observed) {
			consent(70)(o)
			o.Claims[1].Epoch = decide.ParseEpoch("1-abc")
		}, decide.Wait, "no leader"},
		{"with another one after one that failed", func(o *decide.Observed) {
			consent(70)(o)
			o.Kept.VoidConsent = &decide.Consent{}
			o.Kept.Recovery = &decide.Recovery{Survivor: "m1", Accepted: decide.Consent{Revision: 70}, Failed: "no"}
		}, decide.Recover, "m1"},
		{"a voter that is not lost does not answer", func(o *decide.Observed) {
			consent(70)(o)
			five := []string{"m1", "m2", "m3", "m4", "m5"}
			o.Answers[0].Voters, o.Answers[0].Members = five, five
			o.Claims = append(o.Claims, decide.Claim{Member: "m4", Used: true})
			o.Pods = append(o.Pods, decide.Pod{Member: "m4", Template: "a"})
		}, decide.Wait, "[m4] may have more"},
		{"a survivor of a later term", func(o *decide.Observed) {
			five := []string{"m1", "m2", "m3", "m4", "m5"}
			o.Answers[0].Voters, o.Answers[0].Members, o.Answers[0].Term = five, five, 2
			o.Answers = append(o.Answers, decide.Answer{Member: "m4", Term: 3, Index: 80, Revision: 60, Voters: five, Members: five})
			o.Claims = append(o.Claims, decide.Claim{Member: "m4", Used: true})
			o.Pods = append(o.Pods, decide.Pod{Member: "m4", Template: "a"})
			o.Want.Consent, o.Kept.Reported = accepts(o, 60), accepts(o, 60)
		}, decide.Recover, "survivor is m4"},
		{"another survivor's claim was deleted", func(o *decide.Observed) {
			five(o)
			o.Want.Consent, o.Kept.Reported = accepts(o, 70), accepts(o, 70)
		}, decide.Wait, "The claims of [m4] were deleted, which answer, too: their data go once their pods stop"},
		{"another survivor's claim was deleted, without a consent", five, decide.Wait, "The claims of [m4] were deleted"},
		{"another survivor's claim was deleted, and need not be compared", func(o *decide.Observed) {
			five(o)
			o.Want.Consent, o.Kept.Reported, o.Want.Uncompared = accepts(o, 70), accepts(o, 70), true
		}, decide.Recover, "m1"},
		{"a lost voter's process starts again and again on a claim that was deleted", func(o *decide.Observed) {
			o.Claims[0].Leaving, o.Pods[0].NodeLost, o.Pods[0].Running = true, false, true
			consent(70)(o)
		}, decide.Wait, "The claims of [m3] were deleted, and their pods are there: delete these pods, too"},
		{"a lost voter's claim was deleted, and its node is lost", func(o *decide.Observed) {
			o.Claims[0].Leaving = true
			consent(70)(o)
		}, decide.Recover, "m1"},
		{"too few are lost, and others do not answer", func(o *decide.Observed) {
			consent(70)(o)
			o.Pods[1].NodeLost = false
		}, decide.Wait, "no leader answers. [m2] do not answer, and [m3] are lost: look at their pods"},
		{"a lost member answers", func(o *decide.Observed) {
			consent(70)(o)
			o.Answers = append(o.Answers, decide.Answer{Member: "m2", Index: 95, Revision: 75, Voters: o.Answers[0].Voters})
		}, decide.Wait, "no leader"},
		{"no survivor answers", func(o *decide.Observed) {
			consent(70)(o)
			o.Answers = nil
		}, decide.Wait, "no leader"},
		{"a node was lost a moment ago", func(o *decide.Observed) {
			consent(70)(o)
			o.Pods[0].Stuck = time.Second
		}, decide.Wait, "no leader"},
		{"a member that was removed long ago, and whose claim is kept", func(o *decide.Observed) {
			o.Claims = append(o.Claims, decide.Claim{Member: "m0", Used: true, Removed: true})
		}, decide.Wait, "The best survivor is m1, at revision 70"},
		{"a member that was removed answers with more", func(o *decide.Observed) {
			o.Claims = append(o.Claims, decide.Claim{Member: "m0", Used: true, Removed: true})
			o.Pods = append(o.Pods, decide.Pod{Member: "m0", Running: true, Template: "a"})
			o.Answers = append(o.Answers, decide.Answer{Member: "m0", Index: 99, Revision: 1000, Voters: []string{"m0", "m1", "m2"}})
		}, decide.Wait, "The best survivor is m1, at revision 70"},
		{"a leader is there", func(o *decide.Observed) {
			consent(70)(o)
			o.Cluster = three().Cluster
		}, decide.VoidConsent, "acceptLossAfter 70"},
		{"a leader is there, and no survivor had as much", func(o *decide.Observed) {
			consent(1000)(o)
			o.Cluster = three().Cluster
		}, decide.VoidConsent, "acceptLossAfter 1000"},
		{"a leader is there, and the consent is void", func(o *decide.Observed) {
			consent(70)(o)
			o.Kept.VoidConsent, o.Cluster = o.Want.Consent, three().Cluster
		}, decide.CreateClaim, ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			o := three()
			leaderless(o)
			row.set(o)
			if o.Cluster != nil {
				o.Cluster.Members[0].Active, o.Cluster.Members[0].Silent = false, time.Hour
			}
			if a := decide.Next(o); a.Kind != row.kind || !strings.Contains(a.Why, row.why) {
				t.Errorf("got %q (%s), want %s …%s…", a, a.Kind, row.kind, row.why)
			}
		})
	}
}

// Ensure that a recovery which has begun is looked at once more before members stop, and is none any more once a leader answers, the
// consent is another one, or the survivor is lost, too; and that its command runs once nothing else has the survivor's claim.
func TestNext_recoveryOff(t *testing.T) {
	stopped := func(o *decide.Observed) {
		o.Kept.Recovery.Stopping, o.Answers, o.Pods = true, nil, o.Pods[:2]
	}
	command := func(p decide.Pod) func(o *decide.Observed) {
		return func(o *decide.Observed) {
			stopped(o)
			p.Member, p.Name, p.Recovers, p.Compares = "m1", "m1-recover", true, true
			p.Template = cmp.Or(p.Template, "a")
			o.Pods = append(o.Pods, p)
		}
	}
	both := func(sets ...func(o *decide.Observed)) func(o *decide.Observed) {
		return func(o *decide.Observed) {
			for _, set := range sets {
				set(o)
			}
		}
	}
	stopping := func(o *decide.Observed) { o.Kept.Recovery.Stopping = true }
	noConsent := func(o *decide.Observed) { o.Want.Consent = nil }
	uncompared := func(o *decide.Observed) { o.Want.Uncompared = true }
	paused := func(o *decide.Observed) { o.Want.Paused = true }
	leads := func(o *decide.Observed) { o.Cluster = three().Cluster }
	back := func(o *decide.Observed) { o.Pods[1].NodeLost, o.Pods[1].Life = false, "its node is well" }
	deleted := func(claim int) func(o *decide.Observed) {
		return func(o *decide.Observed) { o.Claims[claim].Leaving = true }
	}
	flapped := func(voters int) func(o *decide.Observed) { // m5 has no claim, and comes back as a pod on a node that is lost again
		return func(o *decide.Observed) {
			o.Pods[0].Life, o.Pods[1].Life = "it was back", cmp.Or(map[bool]string{true: "it was back"}[voters > 1], o.Pods[1].Life)
			if voters > 2 {
				o.Pods = append(o.Pods, decide.Pod{Member: "m5", Template: "a", NodeLost: true, Stuck: time.Hour, Life: "it was back"})
			}
		}
	}
	isVoid := func(o *decide.Observed) { o.Kept.VoidConsent = o.Want.Consent }
	leftOut := func(o *decide.Observed) { o.Claims[2].LeftOut, o.Kept.Recovery.Failed = true, "a leader answers" }
	ran := func(o *decide.Observed) {
		o.Claims[2].Leaves = []string{"m2", "m3", "m4", "m5"}
		if i := slices.IndexFunc(o.Pods, func(p decide.Pod) bool { return p.Member == "m1" && !p.Recovers }); i >= 0 {
			o.Pods = slices.Delete(o.Pods, i, i+1)
		}
	}
	starts := func(o *decide.Observed) {
		o.Pods = append(o.Pods, decide.Pod{Member: "m1", Template: "a", Running: true, Started: true})
	}
	homeless := command(decide.Pod{Homeless: true, Stuck: time.Minute})
	waits := command(decide.Pod{Waits: "ImagePullBackOff"})
	runs := command(decide.Pod{Running: true, Started: true})
	for _, row := range []struct {
		name string
		set  func(o *decide.Observed)
		kind decide.Kind
		why  string
	}{
		{"the loss is the same", func(*decide.Observed) {}, decide.StopMembers, "is the one that was accepted"},
		{"nobody answers at this look", func(o *decide.Observed) { o.Answers = nil }, decide.Wait, "is seen again"},
		{"nobody answers, since the survivor's pod is gone", func(o *decide.Observed) {
			o.Answers, o.Pods = nil, slices.Delete(o.Pods, 2, 3)
		}, decide.CreatePod, "it has no pod"},
		{"a lost voter's node is well again", back, decide.RecoverFails, "m2, which was lost, came back"},
		{"a lost voter's pod is gone, as its node came back", func(o *decide.Observed) { o.Pods = o.Pods[1:] }, decide.RecoverFails,
			"m3, which was lost, came back"},
		{"a lost voter was back, and is lost again", func(o *decide.Observed) { o.Pods[1].Life = "another" }, decide.RecoverFails,
			"m2, which was lost, came back"},
		{"a lost voter without a claim has one", func(o *decide.Observed) {
			o.Claims = append(o.Claims, decide.Claim{Member: "m5"})
		}, decide.RecoverFails, "m5, which was lost, came back"},
		{"a status of an older operator", func(o *decide.Observed) { o.Kept.Recovery.Lost = nil }, decide.RecoverFails,
			"does not say which voters were lost"},
		{"the survivor has more", func(o *decide.Observed) { o.Answers[0].Index++ }, decide.RecoverFails, "another one than was accepted"},
		{"a leader answers", leads, decide.RecoverFails, "a leader answers again"},
		{"the consent was taken out", noConsent, decide.RecoverFails, "no longer the consent"},
		{"the consent is another one", func(o *decide.Observed) { o.Want.Consent = &decide.Consent{Revision: 70} }, decide.RecoverFails,
			"no longer the consent"},
		{"members stop, the survivor last", stopping, decide.DeletePod, "DeletePod m4"},
		{"the survivor stops", both(stopping, func(o *decide.Observed) { o.Pods = o.Pods[:3] }), decide.DeletePod, "DeletePod m1"},
		{"members stop, and the survivor does not answer", both(stopping, func(o *decide.Observed) { o.Answers = nil }), decide.Wait,
			"once it answers again. Take spec.recovery out to end it"},
		{"members stop, and the survivor has more, as where an old status was put back", both(stopping, func(o *decide.Observed) {
			o.Answers[0].Index++
		}), decide.RecoverFails, "another one than was accepted"},
		{"members stop, and a lost voter comes back", both(stopping, back), decide.RecoverFails, "m2, which was lost, came back"},
		{"all are stopped, and a lost voter comes back", both(stopped, back), decide.RecoverFails, "m2, which was lost, came back"},
		{"members stop, and the survivor's claim was deleted", both(stopping, deleted(2)), decide.RecoverFails,
			"the claim of m1 was deleted"},
		{"members stop, and a claim was deleted that would be compared", both(stopping, deleted(3)), decide.RecoverFails,
			"the claims of [m4] were deleted, which would be compared"},
		{"a claim was deleted that would be compared, and need not be", both(stopping, deleted(3), uncompared), decide.DeletePod,
			"DeletePod m4"},
		{"another survivor would not be compared, as an older status has it", func(o *decide.Observed) { o.Kept.Recovery.Compare = nil },
			decide.RecoverFails, "of which only [] would be compared"},
		{"members stop, and the claim of one that is no voter goes with its pod", both(stopped, func(o *decide.Observed) {
			o.Claims = append(o.Claims, decide.Claim{Member: "m6", Leaving: true})
			o.Pods = append(o.Pods, decide.Pod{Member: "m6"})
		}), decide.Wait, "Its claim was deleted, and its data go with its pod"},
		{"a lost voter's claim would go with its pod on a lost node", both(stopped, deleted(0)), decide.RunRecovery,
			"accepts the loss"},
		{"members stop, and the survivor's node is lost", both(stopping, func(o *decide.Observed) {
			o.Pods[2].NodeLost, o.Pods[2].Stuck = true, time.Minute
		}), decide.RecoverFails, "the node of m1 is lost, too"},
		{"members stop, and the cluster is paused", both(stopping, paused), decide.RecoverFails, "spec.paused is set"},
		{"members stop, and the node of another survivor is lost", both(stopped, func(o *decide.Observed) {
			o.Pods = append(o.Pods, decide.Pod{Member: "m4", NodeLost: true, Leaving: true, Stuck: time.Minute})
		}), decide.RecoverFails, "the nodes of [m4], which would be compared, are lost, too"},
		{"members stop, and the node of another survivor is lost, which need not be compared", both(stopped, uncompared, func(o *decide.Observed) {
			o.Pods = append(o.Pods, decide.Pod{Member: "m4", NodeLost: true, Leaving: true, Stuck: time.Minute})
		}), decide.RunRecovery, "accepts the loss"},
		{"all are stopped, and the consent was taken out", both(stopped, noConsent), decide.RecoverFails, "no longer the consent"},
		{"all are stopped but on lost nodes", stopped, decide.RunRecovery, "accepts the loss"},
		{"another survivor's process may live on a lost node", func(o *decide.Observed) {
			stopped(o)
			o.Pods = append(o.Pods, decide.Pod{Member: "m4", NodeLost: true, Leaving: true})
		}, decide.Wait, "m4 stops before"},
		{"another survivor's process may live on a lost node, and its claim need not be compared", func(o *decide.Observed) {
			both(stopped, uncompared)(o)
			o.Pods = append(o.Pods, decide.Pod{Member: "m4", NodeLost: true, Leaving: true})
		}, decide.RunRecovery, "accepts the loss"},
		{"the survivor's process may live on a lost node", func(o *decide.Observed) {
			stopped(o)
			o.Pods = append(o.Pods, decide.Pod{Member: "m1", NodeLost: true, Leaving: true})
		}, decide.Wait, "m1 stops before"},
		{"the command runs, and none that it leaves out shall serve", both(runs, noConsent), decide.DeletePod, "DeletePod m2"},
		{"the command runs, and those that it leaves out lead, with what they acknowledged", both(runs, ran, leads), decide.LeaveOut,
			"a leader answers without it"},
		{"the command runs, and those that it leaves out lead during a pause, and may be lost before it ends", both(runs, ran, leads, paused),
			decide.LeaveOut, "a leader answers without it"},
		{"the command runs, and three of five were back since it was made", both(runs, ran, flapped(3)), decide.LeaveOut,
			"were there again since its command was made"},
		{"the command runs, and one of five was back since it was made", both(runs, ran, flapped(1)), decide.DeletePod, "DeletePod m2"},
		{"the command has ended, and three of five were back since it was made", both(stopped, ran, flapped(3)), decide.LeaveOut,
			"were there again since its command was made"},
		{"the command has ended, and two of five were back since it was made", both(stopped, ran, flapped(2)), decide.CreatePod,
			"it tells whether it was recovered"},
		{"the command has ended, three of five were back since it was made, and the survivor has not started", both(stopped, ran, starts,
			flapped(3), func(o *decide.Observed) {
				p := &o.Pods[len(o.Pods)-2]
				p.Running, p.Started = false, false
			}), decide.DeletePod, "may have led meanwhile"},
		{"three of five were back during a pause, after a recovery that had failed", both(stopped, flapped(3), paused, func(o *decide.Observed) {
			o.Kept.Recovery.Failed = "no"
		}), decide.RecoverFails, "no"},
		{"three of five were back after that", both(stopped, ran, flapped(3), func(o *decide.Observed) {
			o.Kept.Recovery.Failed, o.Kept.Recovery.Lost = "no", nil
		}), decide.CreatePod, "it tells whether it was recovered"},
		{"the command runs, and a leader has answered without it", both(runs, leads, leftOut), decide.EndRecovery,
			"its claim is used no more"},
		{"the command has ended, and a leader has answered without it", both(runs, leads, leftOut, func(o *decide.Observed) {
			o.Pods[2].Ended = true
		}), decide.EndRecovery, "its claim is used no more"},
		{"a node has the command, which may have started, and those that it leaves out lead", both(waits, ran, leads), decide.LeaveOut,
			"a leader answers without it"},
		{"the command ended badly, and those that it leaves out lead", both(runs, ran, leads, func(o *decide.Observed) {
			o.Pods[2].Ended = true
		}), decide.LeaveOut, "a leader answers without it"},
		{"others lead before the survivor has started, during a pause", both(stopped, ran, leads, paused), decide.LeaveOut,
			"a leader answers without it"},
		{"the command's pod is gone, nobody told how it ended, and the cluster is paused", both(stopped, ran, paused), decide.RecoverFails,
			"spec.paused is set"},
		{"after the pause the survivor tells before others start", both(stopped, ran, isVoid), decide.CreatePod,
			"it tells whether it was recovered"},
		{"the loss is the same, and the consent became void in a pause", isVoid, decide.RecoverFails, "its consent is void"},
		{"all are stopped, and the consent became void in a pause", both(stopped, isVoid), decide.RecoverFails, "its consent is void"},
		{"the command does not start, and the consent became void", both(waits, isVoid), decide.EndRecovery, "its consent is void"},
		{"others lead before the survivor has started, whose pod waits", both(stopped, ran, starts, leads, func(o *decide.Observed) {
			p := &o.Pods[len(o.Pods)-1]
			p.Running, p.Started, p.Waits = false, false, "ImagePullBackOff"
		}), decide.DeletePod, "a leader answers without it"},
		{"others lead, and the survivor's pod waits on a lost node", both(stopped, ran, starts, leads, func(o *decide.Observed) {
			p := &o.Pods[len(o.Pods)-1]
			p.Running, p.Started, p.NodeLost = false, false, true
			for i := range o.Cluster.Members {
				o.Cluster.Members[i].Active = o.Cluster.Members[i].Name != "m1"
			}
		}), decide.Wait, "Once that machine is off: `kubectl delete -n ns pod m1 --force`. A leader answers, the claim stays"},
		{"the command runs, and the consent was taken out", both(runs, noConsent, func(o *decide.Observed) {
			o.Pods[0].Leaving, o.Pods[1].Leaving = true, true
		}), decide.Wait, "m1 is recovered"},
		{"the command's node is lost", command(decide.Pod{NodeLost: true, Stuck: time.Minute}), decide.Wait,
			"kubectl delete -n ns pod m1-recover --force"},
		{"the command's node is lost, and its pod was deleted", command(decide.Pod{NodeLost: true, Stuck: time.Minute, Leaving: true}),
			decide.Wait, "kubectl delete -n ns pod m1-recover --force"},
		{"no node takes the command", homeless, decide.Wait, "spec.recovery.uncomparedLoss: "},
		{"no node takes the command, and the consent was taken out", both(homeless, noConsent), decide.EndRecovery, "no longer the consent"},
		{"no node takes the command, and claims need not be compared", both(homeless, uncompared), decide.EndRecovery, "are not compared"},
		{"no node takes the command, and a lost voter came back", both(homeless, back), decide.EndRecovery,
			"m2, which was lost, came back"},
		{"no node takes the command, and a leader answers", both(homeless, leads), decide.EndRecovery, "a leader answers again"},
		{"no node takes the command, and its claim goes with it", both(homeless, noConsent, deleted(2)), decide.Wait,
			"their data go once the pod m1-recover stops"},
		{"the command does not start", waits, decide.Wait, "has not started: ImagePullBackOff. Its events say more"},
		{"the command does not start, and the consent was taken out", both(waits, noConsent), decide.EndRecovery, "no longer the consent"},
		{"the command ends before it started", command(decide.Pod{Leaving: true}), decide.Wait, "the pod of the recovery ends"},
		{"the command does not start, and claims need not be compared", both(waits, uncompared), decide.EndRecovery, "are not compared"},
		{"the command does not start, and claims shall be compared after all", both(waits, func(o *decide.Observed) {
			o.Pods[2].Compares = false
		}), decide.EndRecovery, "are compared"},
		{"the command does not start, and the cluster is paused", both(waits, paused), decide.EndRecovery, "spec.paused is set"},
		{"the command runs, and the cluster is paused", both(runs, paused, noConsent), decide.Wait,
			"The next step would be DeletePod m2"},
		{"the command has ended well, and the cluster is paused", func(o *decide.Observed) {
			both(runs, paused, noConsent)(o)
			o.Pods[2].Ended, o.Pods[2].Succeeded = true, true
		}, decide.Wait, "The next step would be DeletePod m2"},
		{"the command does not start, and the spec changed", both(waits, func(o *decide.Observed) { o.Want.Template = "b" }),
			decide.EndRecovery, "the spec changed"},
		{"the command runs, and ends as it was called off", both(command(decide.Pod{Started: true, Leaving: true}), back), decide.Wait,
			"the pod of the recovery ends"},
		{"the command ended well", command(decide.Pod{Started: true, Ended: true, Succeeded: true}), decide.DeletePod,
			"the command that leaves it out was started"},
		{"the command's pod is gone, and nobody told how it ended", both(stopped, ran), decide.CreatePod, "it tells whether it was recovered"},
		{"the survivor starts to tell", both(stopped, ran, starts), decide.Wait, "until then no other member starts"},
		{"the survivor was recovered, and leads", both(stopped, ran, starts, leads, func(o *decide.Observed) {
			o.Cluster.Members = slices.DeleteFunc(o.Cluster.Members, func(m decide.Member) bool { return m.Name != "m1" })
		}), decide.Recovered, "without those that were left out"},
		{"the survivor is of the epoch of before", both(ran, starts), decide.Unchanged, "as it was before the command"},
		{"the survivor is of a later epoch, and does not lead yet", both(ran, starts, func(o *decide.Observed) { o.Answers[0].Epoch = 1 }),
			decide.Wait, "before it answers"},
		{"the survivor tells no epoch, and nobody can log in", both(ran, starts, func(o *decide.Observed) { o.Answers[0].Hearsay = true }),
			decide.Wait, "kubectl annotate -n ns pvc m1 quorate.io/leaves-"},
		{"the survivor follows a leader with those that were left out", both(stopped, ran, starts, leads), decide.Unchanged, "m1"},
		{"others lead before the survivor has started", both(stopped, ran, leads), decide.LeaveOut, "a leader answers without it"},
		{"others lead, and the survivor's process is silent", both(stopped, ran, starts, leads, func(o *decide.Observed) {
			for i := range o.Cluster.Members {
				o.Cluster.Members[i].Active = o.Cluster.Members[i].Name != "m1"
			}
		}), decide.Wait, "delete the pod of m1 alone: a leader answers, the claim stays"},
		{"nobody told how the command ended, and the survivor's claim was deleted", both(stopped, ran, deleted(2)), decide.Wait,
			"its claim was deleted"},
		{"the command has ended, and its claim goes with it", func(o *decide.Observed) {
			both(runs, deleted(2))(o)
			o.Kept.Recovery.Done, o.Pods[2].Ended = true, true
		}, decide.Wait, "their data go once the pod m1-recover stops"},
	} {
		t.Run(row.name, func(t *testing.T) {
			o := three()
			leaderless(o)
			five(o)
			o.Claims[3].Leaving = false
			o.Want.Consent, o.Kept.Reported = accepts(o, 70), accepts(o, 70)
			o.Kept.Recovery = decide.Next(o).Recovery
			row.set(o)
			a := decide.Next(o)
			if a.Kind != row.kind || !strings.Contains(a.String(), row.why) {
				t.Errorf("got %q (%s), want %s …%s…", a, a.Kind, row.kind, row.why)
			}
			if a.Kind == decide.RunRecovery && (len(a.Recovery.Compare) == 0) != o.Want.Uncompared {
				t.Errorf("compares %v", a.Recovery.Compare)
			}
		})
	}
}

// Ensure that a consent that was not needed, since the nodes came back, is none to the next loss, and that another one is.
func TestNext_consentOfFormerLoss(t *testing.T) {
	w := begun(t)
	w.loseTwo()
	steps := func(times int) {
		for range times {
			w.act(decide.Next(w.observe()))
			w.advance()
		}
	}
	steps(2)
	consent := *w.kept.Reported
	w.want.Consent = &consent
	w.lose([4]bool{}) // before the operator has looked
	steps(10)
	w.loseTwo()
	steps(10)
	if w.kept.Recovery != nil || len(w.voters) != 3 || w.kept.VoidConsent == nil || *w.kept.VoidConsent != consent {
		t.Fatalf("recovered by a former consent: %+v, voters %v, void %v", w.kept.Recovery, w.voters, w.kept.VoidConsent)
	}
	o := w.observe()
	again := decide.LossOf(o).Consent()
	w.want.Consent = &again
	steps(200)
	if w.kept.Recovery == nil || !w.kept.Recovery.Done || w.working() != 3 || w.fault != "" {
		t.Errorf("with a consent to this loss: %+v, %d work; %s", w.kept.Recovery, w.working(), w.fault)
	}
}

// Ensure that a recovery stops all members, runs the command once, and is carried on from wherever the operator died; members that it
// leaves out stay stopped, and keep their claims.
func TestNext_recovery(t *testing.T) {
	w := begun(t)
	lost, survivor := w.loseTwo()
	if a := decide.Next(w.observe()); a.Kind != decide.Wait {
		t.Fatalf("without a consent: %v", a)
	}
	w.report()
	w.want.Consent = w.kept.Reported
	for range 200 {
		a := decide.Next(w.observe())
		for range w.rand.IntN(3) { // the operator dies before it, or does it twice
			if w.observe(); decide.Next(w.observe()).String() == a.String() {
				w.act(a)
			}
		}
		w.advance()
		if w.fault != "" {
			t.Fatal(w.fault)
		}
	}
	if len(w.voters) != 3 || w.working() != 3 || !w.voters[survivor] || !w.kept.Recovery.Done {
		t.Errorf("voters %v, of which %d work, recovery %+v", w.voters, w.working(), w.kept.Recovery)
	}
	for _, name := range lost {
		if w.claims[name] == nil || w.voters[name] || w.pods[name] != nil && !w.pods[name].Leaving {
			t.Errorf("%s: its claim is gone, or it runs", name)
		}
	}
}
