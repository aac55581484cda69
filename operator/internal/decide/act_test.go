package decide_test

import (
	"fmt"
	"slices"
	"strings"

	"github.com/quorate/quorate/operator/internal/decide"
)

func (w *world) name(id uint64) string {
	for name, known := range w.ids {
		if known == id {
			return name
		}
	}
	return ""
}

// judge says which law an action breaks.
func (w *world) judge(a decide.Action) {
	w.goesOn(a)
	breaks := func(format string, args ...any) {
		w.fault = fmt.Sprintf(format, args...) + ": " + a.String()
	}
	recovers := w.kept.Recovery != nil && !w.kept.Recovery.Done
	all, working := len(w.voters), w.working()
	switch a.Kind {
	case decide.Wait, decide.Founded, decide.VoidConsent, decide.RecoverFails, decide.Recovered, decide.EndRecovery, decide.LeaveOut:
	default:
		if w.want.Paused {
			breaks("a paused cluster is changed")
		}
	}
	if (a.Kind == decide.NoteRemoved || a.Kind == decide.DeleteClaim && w.disk[a.Member]) && w.unsettled > 0 && w.quorum() {
		breaks("the removal of the member may be taken back")
	}
	switch a.Kind {
	case decide.DeletePod:
		uncompared := recovers && w.want.Uncompared && w.kept.Recovery.Survivor != a.Member
		c := w.claims[a.Member]
		if c != nil && c.Leaving && w.disk[a.Member] && (w.leftOut[a.Member] || w.voters[a.Member] && !w.quorum()) && !uncompared {
			breaks("a pod is deleted with which the data of a voter go")
		}
		if c != nil && c.Leaving && !w.quorum() && !uncompared {
			w.only(a.Member, breaks)
		}
		command := w.pods[w.survivor()+"-recover"]
		if recovers && w.kept.Recovery.Failed == "" && (command == nil || !command.Started) && w.lost[w.node[a.Member]] && slices.ContainsFunc(w.kept.Recovery.Lost,
			func(l decide.LostVoter) bool { return l.Member == a.Member }) {
			breaks("a voter is stopped that may come back")
		}
		others := working - 1
		// one that a recovery left out is a voter again where the recovered one was lost, too, and counts for nothing alone
		gives := recovers || slices.Contains(w.kept.Dropped, a.Member)
		if !w.voters[a.Member] || !w.up(a.Member) || gives && !w.quorum() {
			return
		}
		if !a.Evict {
			breaks("a voter that works is stopped without asking the budget")
		}
		if all > 2 && others < decide.Quorum(all) || all <= 2 && others < all-1 {
			breaks("a voter that works is stopped, and %d of %d others work", others, all)
		}
	case decide.Remove:
		if w.voters[w.name(a.ID)] && !w.quorum() {
			breaks("a voter is removed without a quorum")
		}
	case decide.CreateClaim:
		if w.claims[a.Member] != nil || w.names[a.Member] && w.kept.Founded && !w.meddled {
			breaks("a second claim for one member")
		}
	case decide.CreatePod:
		if p := w.pods[a.Member]; p != nil {
			breaks("a second pod for one member")
		}
		if len(a.Names) > 0 && w.kept.Founded {
			breaks("a pod founds a second cluster")
		}
		w.startsApart(a, breaks)
		w.leads(a, breaks)
		if w.claims[a.Member].Removed && !w.quorum() {
			breaks("a member is started that was removed")
		}
	case decide.DeleteClaim:
		w.only(a.Member, breaks)
		if (w.voters[a.Member] || w.learners[a.Member]) && (w.disk[a.Member] || w.liar == "") {
			breaks("the claim of a member is deleted")
		}
		if w.leftOut[a.Member] {
			breaks("a claim is deleted that may hold what the survivor of a recovery lacks")
		}
	case decide.EndRecovery, decide.RecoverFails:
		if w.ran && w.disk[a.Member] && strings.Contains(a.Why, "nothing was recovered") && !w.meddled {
			breaks("the survivor was recovered")
		}
		w.ends(a, breaks)
	case decide.Recover, decide.StopMembers, decide.RunRecovery:
		if w.quorum() {
			breaks("a cluster with a quorum is recovered")
		}
		w.compares(a, breaks)
		w.accepts(a, breaks)
	}
}

// startsApart judges that no member is started which a command has left out while its survivor may come back, and no survivor
// beside a quorum that the command did not see: the writes of either would be lost.
func (w *world) startsApart(a decide.Action, breaks func(string, ...any)) {
	if w.other == nil || !w.ran || !w.other.voters[a.Member] || w.voters[a.Member] && !w.quorum() {
		return
	}
	if w.quorum() && len(w.other.voters) == 1 {
		breaks("the survivor of a recovery is started beside a quorum")
	}
	for name := range w.voters {
		if c := w.claims[name]; len(w.voters) == 1 && w.epoch.Number > w.other.epoch.Number && c != nil && !c.Leaving && w.disk[name] &&
			!(c.LeftOut && w.line.log == w.began) { // it starts no more, and has not led
			breaks("a member is started that the recovery of %s has left out", name)
		}
	}
}

func (w *world) survivor() string {
	if r := w.kept.Recovery; r != nil {
		return r.Survivor
	}
	return ""
}

// goesOn judges that no command is left to be started while a leader answers, and that members do not stop for it once more was
// acknowledged than the consent is to.
func (w *world) goesOn(a decide.Action) {
	name := w.survivor()
	p, c := w.pods[name+"-recover"], w.claims[name]
	waits := p != nil && !p.Started && !p.Leaving && !p.Ended && c != nil && !c.Leaving
	if waits && w.quorum() && a.Kind != decide.EndRecovery && a.Kind != decide.LeaveOut && !w.lost[w.node[name+"-recover"]] {
		w.fault = "a recovery goes on, and a leader answers: " + a.String()
	}
	r := w.kept.Recovery
	if a.Kind == decide.DeletePod && r != nil && r.Stopping && r.Failed == "" && !r.Done && p == nil && w.up(name) &&
		w.acked[r.Accepted.Loss].log != w.lineOf(name).log {
		w.fault = "members stop for a loss that is over: " + a.String()
	}
}

// ends judges that a command which may run goes on, and that it is not called failed before.
func (w *world) ends(a decide.Action, breaks func(string, ...any)) {
	r := w.kept.Recovery
	p := w.pods[a.Member+"-recover"]
	if p == nil || p.Ended || r == nil || r.Done || r.Failed != "" {
		return
	}
	if a.Kind == decide.RecoverFails || p.Started {
		breaks("the command of the recovery may run")
	}
	if c := w.claims[a.Member]; c != nil && c.Leaving {
		breaks("the survivor's data go with the pod of the recovery")
	}
}

// compares notes who answered when members began to be stopped, and judges that the command reads the claims of all these.
func (w *world) compares(a decide.Action, breaks func(string, ...any)) {
	switch {
	case a.Kind == decide.StopMembers:
		w.survivors = nil
		for _, name := range sorted(w.voters) {
			if w.up(name) {
				w.survivors = append(w.survivors, name)
			}
		}
	case a.Kind == decide.RunRecovery && !w.want.Uncompared && !w.meddled:
		for _, name := range w.survivors {
			if name != a.Member && !slices.Contains(a.Recovery.Compare, name) {
				breaks("the claim of %s is not compared", name)
			}
		}
	}
}

// report is what the status says of a loss after each look.
func (w *world) report() {
	o := w.observe()
	loss, r := decide.LossOf(o), w.kept.Recovery
	switch {
	case o.Cluster != nil, r != nil && !r.Done && r.Failed == "":
		w.kept.Reported = nil
	case loss != nil && len(loss.Silent) == 0:
		consent := loss.Consent()
		w.kept.Reported = &consent
		if _, known := w.acked[loss.ID]; !known {
			w.acked[loss.ID] = told{loss.Survivor.Member, w.lineOf(loss.Survivor.Member).log}
		}
	}
	if w.want.Consent == nil {
		w.kept.VoidConsent = nil
	}
	if o.Cluster == nil {
		return
	}
	for i := range o.Cluster.Members { // a note of what the leader named, on each claim
		if c := w.claims[o.Cluster.Members[i].Name]; c != nil && o.Doubted() == "" {
			c.Epoch, c.Removed = o.Cluster.Epoch, false
		}
	}
}

// act performs an action, as the shell does: what it starts may have been done already.
func (w *world) act(a decide.Action) {
	w.judge(a)
	defer w.report()
	switch a.Kind {
	case decide.Found:
		w.kept.Founders, w.kept.Serial = a.Names, a.Serial
	case decide.Founded:
		w.kept.Founded = true
	case decide.CreateClaim:
		w.claims[a.Member] = &decide.Claim{Member: a.Member, Serial: a.Serial, Zone: a.Zone, Bytes: w.want.Bytes}
		w.names[a.Member] = true
		if !w.voters[a.Member] && !w.learners[a.Member] {
			delete(w.ids, a.Member)
		}
		delete(w.log, a.Member)
		delete(w.leftOut, a.Member) // a number may come twice after an old status, but on another disk
		w.kept.Serial = max(w.kept.Serial, a.Serial)
	case decide.DeleteClaim:
		w.claims[a.Member].Leaving = true
	case decide.ResizeClaim:
		w.claims[a.Member].Bytes = w.want.Bytes
	case decide.CreatePod:
		w.claims[a.Member].Used = true
		w.pods[a.Member] = &decide.Pod{Member: a.Member, Template: w.want.Template, Founding: len(a.Names) > 0, Life: w.life()}
		if o := w.observe(); o.Cluster != nil && o.Doubted() == "" {
			w.claims[a.Member].Epoch = o.Cluster.Epoch
		}
		w.node[a.Member] = w.rand.IntN(len(w.lost))
	case decide.DeletePod:
		w.pods[a.Member].Leaving = true
	case decide.Add, decide.Replace, decide.Remove:
		if w.job == nil && w.quorum() {
			w.nextID++
			w.job = &job{id: w.nextID}
			if a.Kind != decide.Remove {
				w.job.add = a.Member
			}
			if a.Kind != decide.Add {
				w.job.remove = w.name(a.ID)
			}
		}
	case decide.Cancel:
		if w.job != nil && w.job.id == a.ID {
			w.job.cancel = true
		}
	case decide.Cordon, decide.Uncordon:
		w.claims[a.Member].Cordon = a.Kind == decide.Cordon
		w.cordoned[w.name(a.ID)] = a.Kind == decide.Cordon
	case decide.Recover:
		w.kept.Recovery, w.ran = a.Recovery, false
	case decide.StopMembers:
		stopping := *w.kept.Recovery
		stopping.Stopping = true
		w.kept.Recovery = &stopping
	case decide.RecoverFails:
		failed := *w.kept.Recovery
		failed.Failed = a.Why
		if a.Forget {
			failed.Lost = nil
		}
		w.kept.Recovery, w.kept.VoidConsent = &failed, &failed.Accepted
	case decide.VoidConsent:
		w.kept.VoidConsent = a.Consent
	case decide.RunRecovery:
		w.pods[a.Member+"-recover"] = &decide.Pod{Member: a.Member, Recovers: true, Template: w.want.Template,
			Compares: len(a.Recovery.Compare) > 0, Homeless: w.rand.IntN(2) == 0}
		w.node[a.Member+"-recover"] = w.node[a.Member]
		w.runs, w.claims[a.Member].Leaves = *a.Recovery, a.Recovery.Leaves
		delete(w.begun, a.Member+"-recover")
	case decide.EndRecovery:
		p := w.pods[a.Member+"-recover"]
		p.Leaving = true
		if c := w.claims[a.Member]; c != nil && p.Homeless { // no node takes it any more
			c.Leaves = nil
		}
	case decide.Recovered:
		if r := w.kept.Recovery; r == nil || r.Survivor != a.Member {
			w.kept.Recovery = &decide.Recovery{Survivor: a.Member, Leaves: a.Names, Done: true}
		} else {
			done := *r
			done.Done, done.Failed = true, ""
			w.kept.Recovery, w.kept.VoidConsent = &done, &done.Accepted
		}
		w.kept.Dropped = append(slices.DeleteFunc(slices.Clone(w.kept.Dropped), func(name string) bool { return name == a.Member }), a.Names...)
		c := w.claims[a.Member]
		c.Leaves, c.LeftOut, c.Epoch = nil, false, w.epoch
	case decide.NoteRemoved:
		if w.voters[a.Member] || w.learners[a.Member] {
			w.fault = "a member is noted as removed: " + a.String()
		}
		w.claims[a.Member].Removed = true
	case decide.Unchanged:
		w.claims[a.Member].Leaves, w.claims[a.Member].LeftOut = nil, false
	case decide.LeaveOut:
		if r := w.kept.Recovery; r != nil && r.Survivor == a.Member && !r.Done {
			failed := *r
			failed.Failed, failed.Lost = a.Why, nil
			w.kept.Recovery, w.kept.VoidConsent = &failed, &failed.Accepted
		}
		w.claims[a.Member].Leaves, w.claims[a.Member].LeftOut, w.claims[a.Member].LeftOutTerm = nil, true, 0
		if w.quorum() {
			w.claims[a.Member].LeftOutTerm = decide.LeftOutTerm(w.kept.Recovery, a.Member, w.term)
		}
	}
}

// disturb lets one thing go wrong, or somebody want something else. With calm, only what keeps a quorum of disks.
func (w *world) disturb() {
	names := sorted(w.claims)
	pick := func() string {
		if len(names) == 0 {
			return ""
		}
		return names[w.rand.IntN(len(names))]
	}
	// A member is harmed only while a quorum of the others is left, before and after a job that runs has removed another one:
	// TestNext_quorumLoss has the other case.
	left := func(name, removed string) bool {
		others, voters := 0, 0
		for voter := range w.voters {
			if voter == removed {
				continue
			}
			voters++
			if voter != name && w.disk[voter] && w.claims[voter] != nil && !w.claims[voter].Leaving && !w.lost[w.node[voter]] {
				others++
			}
		}
		return others >= decide.Quorum(voters)
	}
	spare := func(name string) bool {
		return !w.voters[name] || left(name, "") && (w.job == nil || left(name, w.job.remove))
	}
	stays := func(name string) bool { // the data of a claim that was deleted go with the pod, which a pause may leave there for long
		c := w.claims[name]
		return c == nil || !c.Leaving || spare(name)
	}
	switch n := pick(); w.rand.IntN(11) {
	case 0: // a claim is deleted by hand
		if n != "" && w.kept.Founded && spare(n) {
			w.claims[n].Leaving = true
		}
	case 1: // a pod is deleted by hand, or its process dies
		if p := w.pods[n]; p != nil && stays(n) {
			p.Leaving = true
		}
	case 2: // a node is lost, or all are well again
		at := w.rand.IntN(len(w.lost))
		lost := [4]bool{}
		lost[at] = w.rand.IntN(2) == 0 && w.kept.Founded
		w.lose(lost)
	case 3:
		at := w.rand.IntN(len(w.drain))
		w.drain = [4]bool{}
		w.drain[at] = w.rand.IntN(2) == 0
	case 4:
		w.want.Template = []string{"a", "b", "bad"}[w.rand.IntN(3)]
	case 5:
		w.want.Members = 1 + 2*w.rand.IntN(3)
	case 6:
		w.want.Bytes++
	case 7: // a member is removed by hand
		if w.voters[n] && w.job == nil && w.quorum() && len(w.voters) > 3 && spare(n) {
			w.nextID++
			w.job = &job{id: w.nextID, remove: n}
		}
	case 8:
		if p := w.pods[n]; p != nil && w.kept.Founded && stays(n) {
			p.Running, p.Ended, p.Said = false, true, "evicted"
		}
	case 9:
		w.want.Paused = true
	case 10:
		w.want.Paused = false
	}
}
