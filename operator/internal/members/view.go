package members

import (
	"fmt"
	"strings"
	"time"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/ctl/upgrade"
	"github.com/quorate/quorate/internal/doctor"
	"github.com/quorate/quorate/operator/internal/decide"
)

// View is what the members tell.
type View struct {
	// Described is the leader's answer; nil: no leader was reached, and Answers tells what single members know.
	Described *quoratepb.Cluster
	Jobs      []*quoratepb.Job // that have not ended
	Findings  []doctor.Finding
	// Apart says which voters have no connection to which: one that was restarted may have an address that others do not
	// know yet, and counts for no quorum that they lead.
	Apart   []string
	Answers []decide.Answer
	// By is the member that passed Described on, and Others is what the others passed on, where that counts as much.
	By     string
	Others []decide.Told
	// Err is why members did not answer; some may have.
	Err error
	// Refused says that a member does not let root in by any password that is known, or by none.
	Refused bool
}

// Cluster is the view as decisions take it; nil: no leader was reached. Its jobs are those of the view, in the same order, and
// for how long each has not moved is not known: the leader's clock is another one.
func (v *View) Cluster() *decide.Cluster {
	if v.Described == nil {
		return nil
	}
	c := &decide.Cluster{By: v.By, Others: v.Others, Leader: v.Described.GetLeader(), Term: v.Described.GetTerm(),
		Epoch: decide.ParseEpoch(v.Described.GetEpoch()), Joint: v.Described.GetJoint(), Unsettled: !v.Described.GetSettled(),
		Blockers: append(upgrade.Blockers(v.Described, v.Jobs), v.Apart...)}
	lost := map[string]bool{}
	for i := range v.Findings {
		f := &v.Findings[i]
		if f.Severity < doctor.Advice && doctor.OfBuild(f.Code) {
			c.Blockers = append(c.Blockers, f.Sentence)
		}
		if f.Code == doctor.DiskLost || f.Code == doctor.MemberCorrupt {
			for _, name := range f.Members {
				lost[name] = true
			}
		}
	}
	for _, m := range upgrade.Order(v.Described) {
		c.Members = append(c.Members, decide.Member{ID: m.GetId(), Name: v.NameOf(m), Voter: votes(m), Joining: joins(m),
			Started: m.GetStarted(), Active: m.GetActive() || m.GetLeader(), CaughtUp: m.GetCaughtUp(), Leader: m.GetLeader(),
			Cordoned: m.GetCordoned(), Silent: time.Duration(m.GetSilentMs()) * time.Millisecond, DiskLost: lost[m.GetName()]})
	}
	for _, job := range v.Jobs {
		j := decide.Job{ID: job.GetId(), Cancelled: job.GetCancelAsked(), Removes: job.GetSpec().GetRemove(),
			What: strings.TrimSpace(fmt.Sprintf("%s %s %s", job.GetSpec().GetKind(), job.GetPhase(), job.GetMessage()))}
		for _, add := range job.GetSpec().GetAdd() {
			j.Adds = append(j.Adds, add.GetName())
		}
		c.Jobs = append(c.Jobs, j)
	}
	return c
}

// NameOf is a member's name. One that has not started yet is called as the job that adds it says.
func (v *View) NameOf(m *quoratepb.Member) string {
	if m.GetName() != "" {
		return m.GetName()
	}
	for _, job := range v.Jobs {
		for i, id := range job.GetNewcomers() {
			if id == m.GetId() && i < len(job.GetSpec().GetAdd()) {
				return job.GetSpec().GetAdd()[i].GetName()
			}
		}
	}
	return ""
}

func votes(m *quoratepb.Member) bool {
	switch m.GetRole() {
	case quoratepb.Role_ROLE_VOTER, quoratepb.Role_ROLE_INCOMING, quoratepb.Role_ROLE_OUTGOING, quoratepb.Role_ROLE_DEMOTING:
		return true
	}
	return false
}

func joins(m *quoratepb.Member) bool { return m.GetRole() == quoratepb.Role_ROLE_JOINING }
