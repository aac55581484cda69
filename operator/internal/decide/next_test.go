package decide_test

import (
	"strings"
	"testing"
	"time"

	"github.com/quorate/quorate/operator/internal/decide"
)

// three is a cluster of three that is as it is wanted; m1 leads.
func three() *decide.Observed {
	o := &decide.Observed{Want: decide.Want{Namespace: "ns", Prefix: "m", Members: 3, Template: "a", Bytes: 1, ReplaceAfter: 30 * time.Second},
		Kept: decide.Kept{Founded: true, Founders: []string{"m1", "m2", "m3"}, Serial: 3}, Cluster: &decide.Cluster{Epoch: decide.ParseEpoch("0")}}
	for i, name := range []string{"m3", "m2", "m1"} { // an upgrade restarts the leader last
		o.Claims = append(o.Claims, decide.Claim{Member: name, Serial: int64(3 - i), Bytes: 1, Used: true})
		o.Pods = append(o.Pods, decide.Pod{Member: name, Template: "a", Running: true, Ready: true})
		o.Cluster.Members = append(o.Cluster.Members, decide.Member{ID: uint64(3 - i), Name: name, Voter: true, Started: true,
			Active: true, CaughtUp: true, Leader: name == "m1"})
	}
	return o
}

// down lets the process of the i-th member be dead for a while.
func down(o *decide.Observed, i int, silent time.Duration) {
	m := &o.Cluster.Members[i]
	m.Active, m.CaughtUp, m.Silent = false, false, silent
	o.Pods[i].Ready, o.Pods[i].Running = false, false
	o.Cluster.Blockers = append(o.Cluster.Blockers, m.Name+" is down")
}

func leaderless(o *decide.Observed) {
	o.Cluster = nil
	o.Answers = []decide.Answer{{Member: "m1", Index: 90, Revision: 70, Voters: []string{"m1", "m2", "m3"},
		Members: []string{"m1", "m2", "m3"}}}
	for i := range 2 {
		o.Pods[i].NodeLost, o.Pods[i].Stuck, o.Pods[i].Ready = true, time.Minute, false
	}
}

// Ensure that each situation has the action that it asks for, and no other one.
func TestNext(t *testing.T) {
	for _, row := range []struct {
		name string
		set  func(o *decide.Observed)
		kind decide.Kind
		who  string
		why  string
	}{
		{"all is well", func(*decide.Observed) {}, decide.Wait, "", "-"}, // nothing is said
		{"no cluster yet", func(o *decide.Observed) { *o = decide.Observed{Want: o.Want} }, decide.Found, "", "no cluster"},
		{"no cluster yet, and members of a former one of the name run", func(o *decide.Observed) {
			*o = decide.Observed{Want: o.Want, Former: []string{"x1"}}
		}, decide.Wait, "", "nothing is founded beside them"},
		{"founders without claims", func(o *decide.Observed) {
			*o = decide.Observed{Want: o.Want, Kept: decide.Kept{Founders: []string{"m1", "m2", "m3"}, Serial: 3}}
		}, decide.CreateClaim, "m1", "founder"},
		{"the status was removed, and members answer", func(o *decide.Observed) { o.Kept = decide.Kept{} }, decide.Founded, "", "answers"},
		{"the status was removed, and no member runs", func(o *decide.Observed) {
			o.Kept, o.Cluster, o.Pods = decide.Kept{}, nil, nil
		}, decide.CreatePod, "m3", "no pod"},
		{"the status was removed, and no leader is there yet", func(o *decide.Observed) {
			o.Kept, o.Cluster = decide.Kept{}, nil
		}, decide.Wait, "", "no leader answers"},
		{"a pod is missing", func(o *decide.Observed) { o.Pods = o.Pods[1:] }, decide.CreatePod, "m3", "no pod"},
		{"a pod is missing, and no leader", func(o *decide.Observed) { o.Pods, o.Cluster = o.Pods[1:], nil }, decide.CreatePod, "m3", ""},
		{"a pod that leaves is waited for", func(o *decide.Observed) {
			down(o, 0, time.Second)
			o.Pods[0].Leaving = true
		}, decide.Wait, "", "m3 is not ready"},
		{"a member is down, its node is well", func(o *decide.Observed) { down(o, 0, time.Hour) }, decide.Wait, "", "m3 is not ready"},
		{"its node was lost a moment ago", func(o *decide.Observed) {
			down(o, 0, time.Second)
			o.Pods[0].NodeLost = true
		}, decide.Wait, "", ""},
		{"its node is lost", func(o *decide.Observed) {
			down(o, 0, time.Minute)
			o.Pods[0].NodeLost = true
		}, decide.CreateClaim, "m4", "takes the place of m3: its node is lost"},
		{"its node is lost, and the claim is there", func(o *decide.Observed) {
			down(o, 0, time.Minute)
			o.Pods[0].NodeLost = true
			o.Claims = append(o.Claims, decide.Claim{Member: "m4", Serial: 4, Bytes: 1})
		}, decide.Replace, "m4", "m3"},
		{"its node is lost, and of the others one is down", func(o *decide.Observed) {
			down(o, 0, time.Minute)
			down(o, 1, time.Second)
			o.Pods[0].NodeLost = true
		}, decide.Wait, "", "no quorum"},
		{"a claim is deleted while the member works, and another one is lost", func(o *decide.Observed) {
			down(o, 1, time.Minute)
			o.Pods[1].NodeLost, o.Claims[0].Leaving = true, true
		}, decide.CreateClaim, "m4", "takes the place of m2"},
		{"a node is drained: its claim is worth waiting for", func(o *decide.Observed) {
			down(o, 0, time.Minute)
			o.Pods[0].Homeless, o.Pods[0].Stuck = true, time.Minute
		}, decide.Wait, "", ""},
		{"no node takes it for long", func(o *decide.Observed) {
			down(o, 0, time.Hour)
			o.Pods[0].Homeless, o.Pods[0].Stuck = true, time.Hour
		}, decide.CreateClaim, "m4", "no node takes it"},
		{"a claim is deleted while the member works", func(o *decide.Observed) { o.Claims[2].Leaving = true },
			decide.CreateClaim, "m4", "takes the place of m1"},
		{"data that the cluster refuses", func(o *decide.Observed) { o.Cluster.Members[1].DiskLost = true },
			decide.CreateClaim, "m4", "refuses its data"},
		{"a change is under way", func(o *decide.Observed) {
			o.Want.Members, o.Cluster.Jobs = 5, []decide.Job{{ID: 7, What: "replace"}}
		}, decide.Wait, "", "replace"},
		{"a change adds a member that has no claim", func(o *decide.Observed) {
			o.Cluster.Jobs = []decide.Job{{ID: 7, Adds: []string{"m4"}}}
			o.Cluster.Members = append(o.Cluster.Members, decide.Member{ID: 4, Name: "m4", Joining: true})
		}, decide.Cancel, "m4", "claim is gone"},
		{"a change waits for a member that is lost", func(o *decide.Observed) {
			down(o, 0, time.Hour)
			o.Pods[0].NodeLost = true
			o.Cluster.Jobs = []decide.Job{{ID: 7, Removes: []uint64{2}, Quiet: time.Hour}}
		}, decide.Cancel, "m3", "node is lost"},
		{"more members", func(o *decide.Observed) { o.Want.Members = 5 }, decide.CreateClaim, "m4", "more"},
		{"more members, and one is down", func(o *decide.Observed) {
			o.Want.Members = 5
			down(o, 0, time.Second)
		}, decide.CreateClaim, "m4", "more"},
		{"more members, and no quorum of them works", func(o *decide.Observed) {
			o.Want.Members = 5
			down(o, 0, time.Second)
			down(o, 1, time.Second)
		}, decide.Wait, "", "too few"},
		{"fewer members", func(o *decide.Observed) { o.Want.Members = 1 }, decide.Remove, "m3", "fewer"},
		{"fewer members: the one that is down", func(o *decide.Observed) {
			o.Want.Members = 1
			down(o, 1, time.Second)
		}, decide.Remove, "m2", "fewer"},
		{"fewer members, and too few work", func(o *decide.Observed) {
			o.Want.Members = 1
			down(o, 0, time.Second)
			down(o, 1, time.Second)
		}, decide.Wait, "", "too few work to remove one"},
		{"a number is not used again, though the status has forgotten it", func(o *decide.Observed) {
			o.Want.Members, o.Claims = 5, append(o.Claims, decide.Claim{Member: "m7", Serial: 7, Used: true, Leaving: true})
		}, decide.CreateClaim, "m8", "more"},
		{"a number is not used again, though the status has forgotten it and the claim is gone", func(o *decide.Observed) {
			o.Kept.Serial, o.Claims, o.Kept.Founders = 0, o.Claims[1:], nil
		}, decide.CreateClaim, "m4", "takes the place of m3"},
		{"founders that cannot start", func(o *decide.Observed) {
			o.Kept.Founded, o.Cluster, o.Pods[1].Ready, o.Pods[1].Waits = false, nil, false, "ImagePullBackOff"
		}, decide.Wait, "", "the founders [m1 m2 m3] have not met yet: m2: ImagePullBackOff"},
		{"a member that is restarted cannot start", func(o *decide.Observed) {
			down(o, 0, time.Second)
			o.Pods[0].Waits = "ImagePullBackOff"
		}, decide.Wait, "", "m3 is not ready: ImagePullBackOff"},
		{"another version, and one cannot start", func(o *decide.Observed) {
			o.Pods[0].Ready, o.Pods[0].Waits, o.Pods[1].Template = false, "ImagePullBackOff", "old"
		}, decide.Wait, "", "m2 waits for its restart until m3 works: ImagePullBackOff"},
		{"a job adds a member that cannot start", func(o *decide.Observed) {
			o.Cluster.Jobs = []decide.Job{{ID: 7, What: "add m4", Adds: []string{"m4"}}}
			o.Claims = append(o.Claims, decide.Claim{Member: "m4", Used: true})
			o.Pods = append(o.Pods, decide.Pod{Member: "m4", Template: "a", Homeless: true, Waits: "0/3 nodes"})
		}, decide.Wait, "", "add m4. m4: no node takes its pod: 0/3 nodes"},
		{"no leader, and members cannot start", func(o *decide.Observed) {
			o.Cluster, o.Pods[2].Waits = nil, "ImagePullBackOff"
		}, decide.Wait, "", "no leader answers. m1: ImagePullBackOff"},
		{"a member was removed, and its pod ends", func(o *decide.Observed) {
			o.Pods = append(o.Pods, decide.Pod{Member: "m4", Leaving: true})
		}, decide.Wait, "", "m4 was removed, and its pod ends"},
		{"a member was removed, and its pod is on a lost node", func(o *decide.Observed) {
			o.Pods = append(o.Pods, decide.Pod{Member: "m4", Leaving: true, NodeLost: true})
		}, decide.Wait, "", "-"},
		{"a member runs, and the leader does not hear it", func(o *decide.Observed) {
			down(o, 0, time.Second)
			o.Pods[0].Running = true
		}, decide.Wait, "", "m3 is not ready: its process runs, and the leader does not hear it"},
		{"a paused cluster that lacks nothing", func(o *decide.Observed) { o.Want.Paused = true }, decide.Wait, "", "paused by spec.paused"},
		{"a paused cluster, and a pod is missing", func(o *decide.Observed) {
			o.Want.Paused, o.Pods = true, o.Pods[1:]
		}, decide.Wait, "", "paused by spec.paused. The next step would be CreatePod m3: it has no pod"},
		{"a paused cluster, and a member is down", func(o *decide.Observed) {
			o.Want.Paused = true
			down(o, 0, time.Second)
		}, decide.Wait, "", "paused by spec.paused: m3 is not ready"},
		{"a paused cluster, and a consent to the loss that is reported", func(o *decide.Observed) {
			leaderless(o)
			o.Want.Paused, o.Want.Consent, o.Kept.Reported = true, accepts(o, 70), accepts(o, 70)
		}, decide.VoidConsent, "", "given meanwhile counts for nothing"},
		{"a consent to a loss, and nothing is lost", func(o *decide.Observed) { o.Want.Consent = &decide.Consent{} }, decide.VoidConsent, "",
			"for no later loss"},
		{"a recovery has begun, and a leader answers", func(o *decide.Observed) {
			o.Kept.Recovery = &decide.Recovery{Survivor: "m1", Leaves: []string{"m2", "m3"}}
		}, decide.RecoverFails, "m1", "nothing was recovered"},
		{"a spare claim of a member that a recovery left out is for nobody", func(o *decide.Observed) {
			o.Want.Members, o.Kept.Recovery, o.Kept.Dropped = 5, &decide.Recovery{Done: true}, []string{"m9"}
			o.Claims = append(o.Claims, decide.Claim{Member: "m9", Serial: 9})
		}, decide.CreateClaim, "m10", "more"},
		{"a member that a recovery left out comes back", func(o *decide.Observed) {
			o.Kept.Recovery, o.Kept.Dropped = &decide.Recovery{Done: true}, []string{"m9"}
			o.Pods = append(o.Pods, decide.Pod{Member: "m9", Running: true})
		}, decide.DeletePod, "m9", "left it out"},
		{"a member that a recovery left out gets no pod", func(o *decide.Observed) {
			o.Kept.Recovery, o.Kept.Dropped, o.Cluster = &decide.Recovery{Done: true}, []string{"m9"}, nil
			o.Claims = append(o.Claims, decide.Claim{Member: "m9", Used: true})
		}, decide.Wait, "", "no leader"},
		{"a founder that was alone gets flags with which it cannot found again", func(o *decide.Observed) {
			o.Kept.Founders, o.Pods[1].Founding = []string{"m2"}, true
		}, decide.DeletePod, "m2", "spec changed"},
		{"founders beside a voter that came later", func(o *decide.Observed) {
			o.Kept.Founders, o.Pods[0].Founding, o.Pods[1].Founding = []string{"m3", "m2"}, true, true
		}, decide.DeletePod, "m3", "spec changed"},
		{"founders among themselves", func(o *decide.Observed) { o.Pods[0].Founding = true }, decide.Wait, "", ""},
		{"the founder of a restored cluster", func(o *decide.Observed) {
			o.Want.Restore, o.Want.Members, o.Kept.Founders, o.Pods[2].Founding = true, 1, []string{"m1"}, true
			o.Claims, o.Pods, o.Cluster.Members = o.Claims[2:], o.Pods[2:], o.Cluster.Members[2:]
		}, decide.DeletePod, "m1", "spec changed"},
		{"a former member's pod", func(o *decide.Observed) { o.Pods = append(o.Pods, decide.Pod{Member: "m9", Running: true}) },
			decide.DeletePod, "m9", "no member any more"},
		{"a former member's claim, first", func(o *decide.Observed) {
			o.Claims = append(o.Claims, decide.Claim{Member: "m9", Used: true, Epoch: decide.ParseEpoch("0")})
			o.Pods = append(o.Pods, decide.Pod{Member: "m9", Running: true})
		}, decide.NoteRemoved, "m9", "no member any more"},
		{"a member whose removal may be taken back", func(o *decide.Observed) {
			o.Claims = append(o.Claims, decide.Claim{Member: "m9", Used: true, Epoch: decide.ParseEpoch("0")})
			o.Pods = append(o.Pods, decide.Pod{Member: "m9", Running: true})
			o.Cluster.Unsettled = true
		}, decide.Wait, "", "the last change of members is not settled"},
		{"a former member's claim", func(o *decide.Observed) {
			o.Claims = append(o.Claims, decide.Claim{Member: "m9", Used: true, Removed: true, Epoch: decide.ParseEpoch("0")})
		}, decide.DeleteClaim, "m9", "no member any more"},
		{"a claim whose member a recovery by hand left out", func(o *decide.Observed) {
			o.Claims = append(o.Claims, decide.Claim{Member: "m9", Used: true, Epoch: decide.ParseEpoch("0")})
			o.Cluster.Epoch = decide.ParseEpoch("1-abc")
		}, decide.Wait, "", ""},
		{"a claim of which nobody knows whether its member was removed", func(o *decide.Observed) {
			o.Claims = append(o.Claims, decide.Claim{Member: "m9", Used: true})
		}, decide.Wait, "", ""},
		{"a process does not run, the spec changed, and its claim would go with its pod", func(o *decide.Observed) {
			o.Cluster, o.Want.Template, o.Pods[0].Running, o.Claims[0].Leaving = nil, "b", false, true
		}, decide.Wait, "", "no leader"},
		{"an old status from before the founding, and no leader", func(o *decide.Observed) {
			o.Kept.Founded, o.Cluster, o.Claims, o.Pods = false, nil, o.Claims[:2], o.Pods[:2]
			o.Claims[0].Member, o.Pods[0].Member = "m4", "m4"
		}, decide.Wait, "", "no leader"},
		{"an old status from before the founding, no leader, and a founder's pod is gone", func(o *decide.Observed) {
			o.Kept.Founded, o.Cluster, o.Pods = false, nil, o.Pods[:2]
			o.Claims[1].Epoch = decide.ParseEpoch("0")
		}, decide.CreatePod, "m1", "no pod"},
		{"a former member's claim is kept", func(o *decide.Observed) {
			o.Claims, o.Want.KeepClaims = append(o.Claims, decide.Claim{Member: "m9", Used: true, Removed: true,
				Epoch: decide.ParseEpoch("0")}), true
		}, decide.Wait, "", ""},
		{"another version that does not start: what its process said", func(o *decide.Observed) {
			o.Want.Template, o.Pods[0].Template, o.Pods[0].Running, o.Pods[0].Ready = "b", "b", false, false
			o.Pods[0].Waits, o.Cluster.Members[0].Active = "its container quorate ended (exit code 1): the disk is read-only", false
			o.Cluster.Blockers = []string{"the leader does not hear m3"}
		}, decide.Wait, "", "hear m3; m3: its container quorate ended (exit code 1): the disk is read-only"},
		{"a version that is refused", func(o *decide.Observed) { o.Want.Refused = "quorate:1.0.0: why" }, decide.Wait, "",
			"no member gets quorate:1.0.0: why"},
		{"the pod of one that a recovery left out", func(o *decide.Observed) {
			o.Kept.Dropped = []string{"m9"}
			o.Claims = append(o.Claims, decide.Claim{Member: "m9", Used: true})
			o.Pods = append(o.Pods, decide.Pod{Member: "m9", Running: true})
			o.Kept.Recovery = &decide.Recovery{Done: true}
		}, decide.DeletePod, "m9", "left it out"},
		{"the pod of one that a recovery left out, on a claim that goes with it", func(o *decide.Observed) {
			o.Kept.Dropped = []string{"m9"}
			o.Claims = append(o.Claims, decide.Claim{Member: "m9", Used: true, Leaving: true})
			o.Pods = append(o.Pods, decide.Pod{Member: "m9", Running: true})
			o.Kept.Recovery = &decide.Recovery{Done: true}
		}, decide.Wait, "", "m9, which a recovery left out, runs, and its claim was deleted"},
		{"the pod of one that a recovery by hand left out, on a claim that goes with it", func(o *decide.Observed) {
			o.Claims = append(o.Claims, decide.Claim{Member: "m9", Used: true, Leaving: true, Epoch: decide.ParseEpoch("0")})
			o.Pods = append(o.Pods, decide.Pod{Member: "m9", Running: true})
			o.Cluster.Epoch, o.Claims[0].Epoch = decide.ParseEpoch("1-a"), decide.ParseEpoch("1-a")
		}, decide.Wait, "", "m9, which a recovery left out, runs, and its claim was deleted"},
		{"another version: followers first", func(o *decide.Observed) { o.Want.Template = "b" }, decide.DeletePod, "m3", "spec changed"},
		{"another version, the leader last", func(o *decide.Observed) {
			o.Want.Template, o.Pods[0].Template, o.Pods[1].Template = "b", "b", "b"
		}, decide.DeletePod, "m1", "spec changed"},
		{"another version, and the doctor finds something", func(o *decide.Observed) {
			o.Want.Template, o.Cluster.Blockers = "b", []string{"the disk of m2 is slow"}
		}, decide.Wait, "", "the disk of m2 is slow"},
		{"another version, and one is not ready yet", func(o *decide.Observed) {
			o.Want.Template, o.Pods[0].Template, o.Pods[0].Ready = "b", "b", false
		}, decide.Wait, "", "until m3 works"},
		{"a version that does not start is taken back where it failed", func(o *decide.Observed) {
			o.Pods[0].Template = "broken"
			down(o, 0, time.Minute)
		}, decide.DeletePod, "m3", "does not run"},
		{"a node is drained: leadership leaves", func(o *decide.Observed) { o.Pods[2].Draining = true }, decide.Cordon, "m1", "drained"},
		{"a node is drained no more", func(o *decide.Observed) {
			o.Claims[2].Cordon, o.Cluster.Members[2].Cordoned = true, true
		}, decide.Uncordon, "m1", "no more"},
		{"a cordon of somebody else's stays", func(o *decide.Observed) { o.Cluster.Members[2].Cordoned = true }, decide.Wait, "", ""},
		{"claims grow", func(o *decide.Observed) { o.Want.Bytes = 2 }, decide.ResizeClaim, "m3", ""},
		{"claims that do not grow keep nothing waiting", func(o *decide.Observed) {
			o.Want.Bytes, o.Want.Template = 2, "b"
			for i := range o.Claims {
				o.Claims[i].Refused = true
			}
		}, decide.DeletePod, "m3", ""},
		{"no leader, and nodes may come back", leaderless, decide.Wait, "", "see status.quorumLoss"},
	} {
		t.Run(row.name, func(t *testing.T) {
			o := three()
			row.set(o)
			a := decide.Next(o)
			if a.Kind != row.kind || row.who != "" && a.Member != row.who || !strings.Contains(a.Why+"-", row.why) || row.why == "-" && a.Why != "" {
				t.Errorf("got %q (%s), want %s %s …%s…", a, a.Kind, row.kind, row.who, row.why)
			}
		})
	}
}
