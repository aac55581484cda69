package decide_test

import (
	"strings"
	"testing"
	"time"

	"github.com/quorate/quorate/operator/internal/decide"
)

// noted is a cluster of three that leads, while a command of a recovery that would leave m2 and m3 out runs on the claim of m1.
func noted() *decide.Observed {
	o := three()
	o.Claims[2].Leaves = []string{"m2", "m3"}
	o.Pods[2] = decide.Pod{Member: "m1", Name: "m1-recover", Recovers: true, Template: "a", Running: true, Started: true}
	down(o, 2, time.Second)
	o.Pods[2].Running = true
	o.Kept.Recovery = &decide.Recovery{Survivor: "m1", Stopping: true, Leaves: []string{"m2", "m3"}}
	return o
}

// Ensure that a leader beside a command is noted on the survivor's claim at once, whatever the status says, and that the pod of a
// command on a claim which is used no more is ended, and holds up nothing else.
func TestNext_leftOut(t *testing.T) {
	left := func(o *decide.Observed) {
		o.Claims[2].Leaves, o.Claims[2].LeftOut, o.Kept.Recovery.Failed = nil, true, "a leader answers"
	}
	stranded := func(o *decide.Observed) {
		left(o)
		o.Pods[2].NodeLost, o.Pods[2].Stuck = true, time.Hour
	}
	for _, row := range []struct {
		name string
		set  func(o *decide.Observed)
		kind decide.Kind
		why  string
	}{
		{"a leader answers", func(*decide.Observed) {}, decide.LeaveOut, "a leader answers without it"},
		{"a leader answers, and the status was wiped", func(o *decide.Observed) { o.Kept = decide.Kept{Founded: true} },
			decide.LeaveOut, "a leader answers without it"},
		{"a leader answers, the status says so, and the claim's patch was refused", func(o *decide.Observed) {
			o.Kept.Recovery.Failed = "a leader answers"
		}, decide.LeaveOut, "a leader answers without it"},
		{"a leader answers, and no node has taken the command", func(o *decide.Observed) {
			o.Kept, o.Pods[2].Homeless, o.Pods[2].Started = decide.Kept{Founded: true}, true, false
		}, decide.EndRecovery, "the recovery has ended"},
		{"its claim is used no more, and the command runs", left, decide.EndRecovery, "its claim is used no more"},
		{"its claim is used no more, and the status is an older one", func(o *decide.Observed) {
			left(o)
			o.Kept.Recovery.Failed = ""
		}, decide.EndRecovery, "its claim is used no more"},
		{"its claim is used no more, the status is an older one, and nobody answers", func(o *decide.Observed) {
			left(o)
			o.Kept.Recovery.Failed, o.Pods, o.Cluster = "", o.Pods[:2], nil
		}, decide.RecoverFails, "its claim is used no more"},
		{"its claim is used no more, and the command's pod ends", func(o *decide.Observed) {
			left(o)
			o.Pods[2].Leaving = true
		}, decide.CreateClaim, "it takes the place of m1"},
		{"its claim is used no more, and the command is on a lost node", stranded, decide.CreateClaim, "it takes the place of m1"},
		{"the same, and it reads claims of others that a leader has", func(o *decide.Observed) {
			stranded(o)
			o.Pods[2].Compares, o.Kept.Recovery.Compare = true, []string{"m2"}
		}, decide.Wait, "kubectl delete -n ns pod m1-recover --force"},
		{"the same, and the status was wiped", func(o *decide.Observed) {
			stranded(o)
			o.Pods[2].Compares, o.Kept.Recovery = true, nil
		}, decide.Wait, "kubectl delete -n ns pod m1-recover --force"},
		{"the same, and no leader answers", func(o *decide.Observed) {
			stranded(o)
			o.Cluster = nil
		}, decide.Wait, "kubectl delete -n ns pod m1-recover --force"},
	} {
		t.Run(row.name, func(t *testing.T) {
			o := noted()
			row.set(o)
			if a := decide.Next(o); a.Kind != row.kind || !strings.Contains(a.String(), row.why) {
				t.Errorf("got %q (%s), want %s …%s…", a, a.Kind, row.kind, row.why)
			}
		})
	}
}

// Ensure that a claim which is used no more, since a leader answered without it, is asked before a loss is reported without it, and that
// all that is told while no leader answers says how: those that led may be gone for ever, too.
func TestNext_leftOutAlone(t *testing.T) {
	const asks = "`kubectl annotate -n ns pvc m3 --overwrite quorate.io/leaves=m1,m2 quorate.io/left-out-`"
	for _, row := range []struct {
		name string
		set  func(o *decide.Observed)
		why  string // "-": nothing about the claim
	}{
		{"nobody answers", func(o *decide.Observed) { o.Answers = nil }, asks},
		{"one answers, and one of the others is lost for ever", func(*decide.Observed) {}, asks},
		{"one of five answers, and may have less", func(o *decide.Observed) {
			five := []string{"m1", "m2", "m3", "m4", "m5"}
			o.Answers[0].Voters, o.Answers[0].Members = five, five
		}, "[m3] may have more, and are waited for"},
		{"one of five answers, which says how the other is asked", func(o *decide.Observed) {
			five := []string{"m1", "m2", "m3", "m4", "m5"}
			o.Answers[0].Voters, o.Answers[0].Members = five, five
		}, asks},
		{"another one took its place before", func(o *decide.Observed) { o.Answers[0].Voters = []string{"m1", "m2"} }, "-"},
		{"a recovery has left it out since", func(o *decide.Observed) { o.Kept.Dropped = []string{"m3"} }, "-"},
		{"its claim was deleted", func(o *decide.Observed) { o.Claims[0].Leaving = true }, "-"},
	} {
		t.Run(row.name, func(t *testing.T) {
			o := three()
			leaderless(o)
			o.Claims[0].LeftOut, o.Pods = true, o.Pods[1:]
			row.set(o)
			a := decide.Next(o)
			if strings.Contains(a.Why, "left-out") == (row.why == "-") || row.why != "-" && !strings.Contains(a.Why, row.why) ||
				a.Kind != decide.Wait {
				t.Errorf("got %q, want …%s…", a, row.why)
			}
			if loss := decide.LossOf(o); row.why != "-" && loss != nil && len(loss.Silent) == 0 {
				t.Errorf("the loss %+v is reported", loss)
			}
			if told := o.UsedNoMore(); (told == "") != (row.why == "-") {
				t.Errorf("told %q", told)
			}
		})
	}
}

// Ensure that a claim that is asked after those that led are gone for ever brings back what it has, alone or with those that are left.
func TestNext_leftOutAsked(t *testing.T) {
	for _, recovered := range []bool{false, true} {
		w := begun(t)
		lost, survivor := w.loseTwo()
		if recovered {
			w.recovered(survivor)
		}
		w.claims[survivor].LeftOut = true
		delete(w.pods, survivor)
		if a := decide.Next(w.observe()); a.Kind != decide.Wait || !strings.Contains(a.Why, "pvc "+survivor) {
			t.Fatalf("recovered %v: %v", recovered, a)
		}
		for _, name := range lost { // one is gone for ever; both, where the survivor leads alone
			if recovered || name == lost[0] {
				delete(w.claims, name)
				delete(w.pods, name)
				delete(w.disk, name)
			}
		}
		w.lose([4]bool{})
		w.asks()
		for range 200 {
			w.act(decide.Next(w.observe()))
			w.advance()
		}
		if w.fault != "" || w.working() != 3 || !w.voters[survivor] || w.claims[survivor].LeftOut {
			t.Errorf("recovered %v: voters %v, of which %d work; %s; %+v", recovered, w.voters, w.working(), w.fault, decide.Next(w.observe()))
		}
	}
}

// Ensure that a note with other words than names of members is no proof that a leader follows from the recovery, and keeps no member that
// was not recovered from going on.
func TestNext_wrongNote(t *testing.T) {
	alone := func(o *decide.Observed) { o.Cluster.Members, o.Pods = o.Cluster.Members[2:], o.Pods[2:] }
	for _, row := range []struct {
		name   string
		leaves []string
		set    func(o *decide.Observed)
		kind   decide.Kind
		why    string
	}{
		{"ids, and others lead with it", []string{"8e9e05c5"}, func(*decide.Observed) {}, decide.Unchanged, "as it was"},
		{"ids, and others lead without it", []string{"8e9e05c5"}, func(o *decide.Observed) {
			down(o, 2, time.Hour)
			o.Pods = o.Pods[:2]
		}, decide.LeaveOut, "a leader answers without it"},
		{"its own name, and it leads alone", []string{"m1"}, alone, decide.Wait, "names no other member ([m1]): correct it"},
		{"names, and it leads alone", []string{"m2", "m3"}, alone, decide.Recovered, "leads without"},
		{"ids, and it answers as before", []string{"8e9e05c5"}, leaderless, decide.Unchanged, "as it was"},
		{"wrong names, and it answers as before", []string{"m7", "m8"}, leaderless, decide.Unchanged, "as it was"},
		{"ids, and it answers in a later epoch", []string{"8e9e05c5"}, func(o *decide.Observed) {
			leaderless(o)
			o.Answers[0].Epoch, o.Answers[0].Voters, o.Answers[0].Members = 1, []string{"m1"}, []string{"m1"}
		}, decide.Wait, "before it answers"},
	} {
		t.Run(row.name, func(t *testing.T) {
			o := three()
			o.Claims[2].Leaves = row.leaves
			row.set(o)
			if a := decide.Next(o); a.Kind != row.kind || !strings.Contains(a.String(), row.why) {
				t.Errorf("got %q (%s), want %s …%s…", a, a.Kind, row.kind, row.why)
			}
		})
	}
}
