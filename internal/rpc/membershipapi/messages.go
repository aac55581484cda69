package membershipapi

import (
	"fmt"
	"slices"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/membership"
)

// clusterMessage tells a view. The jobs say which learners are on their way to be voters.
func clusterMessage(
	o *Options, v *membership.View, term consensus.Term, jobs []membership.Job,
) *quoratepb.Cluster {
	message := &quoratepb.Cluster{
		ClusterId: o.ClusterID, Epoch: o.Member.EpochName(),
		Config: configIDMessage(v.ID), Joint: v.Config.IsJoint(), Settled: v.Settled,
		Leader: uint64(v.Leader), Term: uint64(term), LastIndex: uint64(v.Last), Strength: strengthOf(v),
		Advice: v.Advice, Alarms: v.Alarms, Level: uint32(v.Level),
	}
	if v.Protocol != consensus.ProtocolAuto { // the first configuration came by none
		message.Protocol = v.Protocol.String()
	}
	joining := joiningBy(jobs)
	for i := range v.Members {
		message.Members = append(message.Members, memberMessage(v, &v.Members[i], joining))
	}
	return message
}

func memberMessage(v *membership.View, m *membership.MemberView, joining []consensus.MemberID) *quoratepb.Member {
	known, _ := v.Config.Member(m.ID)
	message := &quoratepb.Member{
		Id: uint64(m.ID), Name: m.Name, PeerUrls: slices.Clone(m.PeerURLs), ClientUrls: slices.Clone(m.ClientURLs),
		Role:   roleOf(&v.Config, &known, slices.Contains(joining, m.ID)),
		Leader: m.ID == v.Leader, Started: m.Started, Active: m.Active, CaughtUp: m.CaughtUp,
		Match: uint64(m.Match), State: m.State, SilentMs: m.SilentMS, Version: m.Version, Zone: m.Zone,
		FormerUrls: slices.Clone(known.FormerURLs), Cordoned: known.Cordoned,
		Build: m.Build, Level: uint32(m.Level),
	}
	if v.Leader != consensus.NoMember && m.Match < v.Last {
		message.Lag = uint64(v.Last - m.Match)
	}
	if t := m.Snapshot; t != nil {
		message.SnapshotSentBytes, message.SnapshotTotalBytes = t.Sent, t.Total
		message.BytesPerSecond = t.BytesPerSecond
	}
	return message
}

// roleOf says what a member is. joining is true if an unfinished job will make a voter of it.
func roleOf(c *consensus.Config, m *consensus.Member, joining bool) quoratepb.Role {
	in, out := slices.Contains(c.Voters, m.ID), slices.Contains(c.Outgoing, m.ID)
	switch {
	case in && c.IsJoint() && !out:
		return quoratepb.Role_ROLE_INCOMING
	case in:
		return quoratepb.Role_ROLE_VOTER
	case out && slices.Contains(c.LearnersNext, m.ID):
		return quoratepb.Role_ROLE_DEMOTING
	case out:
		return quoratepb.Role_ROLE_OUTGOING
	case m.Promote || m.Joining || joining:
		return quoratepb.Role_ROLE_JOINING
	case c.IsLearner(m.ID):
		return quoratepb.Role_ROLE_LEARNER
	}
	return quoratepb.Role_ROLE_UNSPECIFIED
}

// joiningBy lists the members that unfinished jobs will make voters of.
func joiningBy(jobs []membership.Job) []consensus.MemberID {
	var ids []consensus.MemberID
	for i := range jobs {
		if jobs[i].State.Ended() {
			continue
		}
		ids = append(ids, jobs[i].Spec.Promote...)
		for _, n := range jobs[i].Spec.Add {
			if !n.Learner {
				ids = append(ids, n.ID)
			}
		}
	}
	return ids
}

func strengthOf(v *membership.View) *quoratepb.Strength {
	strength := membership.Measure(&v.Config, v.Fit())
	return strengthMessage(&strength)
}

func strengthMessage(s *membership.Strength) *quoratepb.Strength {
	return &quoratepb.Strength{
		Voters: int32(s.Voters), Outgoing: int32(s.Outgoing), Learners: int32(s.Learners), Quorum: int32(s.Quorum),
		OutgoingQuorum: int32(s.OutQuorum), Superquorum: int32(s.Superquorum), Active: int32(s.Active),
		Tolerates: int32(s.Tolerates),
	}
}

// configIDMessage tells a configuration id. That of a cluster as it was founded is zero, and told all the same.
func configIDMessage(id consensus.ConfigID) *quoratepb.ConfigID {
	return &quoratepb.ConfigID{Index: uint64(id.Index), Term: uint64(id.Term), Stage: uint32(id.Stage)}
}

func planMessage(p *membership.Plan) *quoratepb.PlanResponse {
	message := &quoratepb.PlanResponse{
		Config: configIDMessage(p.Config), Leader: uint64(p.Leader), Now: strengthMessage(&p.Now),
		Blockers: p.Blockers, Warnings: p.Warnings, Done: p.Done, Undo: p.Undo,
	}
	if p.Protocol != consensus.ProtocolAuto {
		message.Protocol = p.Protocol.String()
	}
	for _, id := range p.WaitsFor {
		message.WaitsFor = append(message.WaitsFor, uint64(id))
	}
	for i := range p.Steps {
		step := &p.Steps[i]
		message.Steps = append(message.Steps, &quoratepb.PlanStep{
			Title: step.Title, Detail: step.Detail,
			During: strengthMessage(&step.During), After: strengthMessage(&step.After),
		})
	}
	return message
}

// jobMessages tells all jobs, in their order.
func jobMessages(jobs []membership.Job) []*quoratepb.Job {
	messages := make([]*quoratepb.Job, len(jobs))
	for i := range jobs {
		messages[i] = jobMessage(&jobs[i], jobs)
	}
	return messages
}

// jobMessage tells one of jobs, or one that is later than all of them.
func jobMessage(j *membership.Job, jobs []membership.Job) *quoratepb.Job {
	message := &quoratepb.Job{
		Id: uint64(j.ID), Spec: specMessage(&j.Spec), State: string(j.State), Phase: string(j.Phase),
		Message: j.Message, CancelAsked: j.CancelAsked, CreatedMs: j.Created, StartedMs: j.Started,
		UpdatedMs: j.Updated, EndedMs: j.Ended, Undo: j.Undo,
	}
	if j.Started != 0 {
		message.Config = configIDMessage(j.Config)
	}
	if j.Final != (consensus.ConfigID{}) {
		message.Final = configIDMessage(j.Final)
	}
	for i := range jobs {
		if jobs[i].ID == j.ID || j.State.Ended() {
			break
		}
		if !jobs[i].State.Ended() {
			message.QueuePosition++
			if message.Message == "" { // of one that is queued
				message.Message = fmt.Sprintf("waits for the end of job %v", jobs[i].ID)
			}
		}
	}
	for _, n := range j.Spec.Add {
		message.Newcomers = append(message.Newcomers, uint64(n.ID))
	}
	for _, n := range j.Names {
		message.Names = append(message.Names, &quoratepb.NamedMember{Id: uint64(n.ID), Name: n.Name})
	}
	for _, phase := range j.Phases {
		message.Phases = append(message.Phases, string(phase))
	}
	for _, b := range j.Begun {
		message.Begun = append(message.Begun, &quoratepb.PhaseTime{Phase: string(b.Phase), AtMs: b.At})
	}
	return message
}

func specMessage(s *membership.Spec) *quoratepb.ChangeSpec {
	message := &quoratepb.ChangeSpec{
		Kind: string(s.Kind), Remove: numbers(s.Remove), Promote: numbers(s.Promote), Demote: numbers(s.Demote),
		Drain: numbers(s.Drain), Protocol: s.Protocol.String(), Force: s.Force,
		JoinWithinMs: s.JoinWithinMS, Cordon: numbers(s.Cordon), Uncordon: numbers(s.Uncordon),
	}
	if s.Expected != (consensus.ConfigID{}) {
		message.Expected = configIDMessage(s.Expected)
	}
	for _, id := range s.After {
		message.After = append(message.After, uint64(id))
	}
	for i := range s.Add {
		n := &s.Add[i]
		message.Add = append(message.Add, &quoratepb.Newcomer{
			Name: n.Name, PeerUrls: n.PeerURLs, Learner: n.Learner, Cordoned: n.Cordoned,
		})
	}
	for i := range s.Update {
		u := &s.Update[i]
		message.Update = append(message.Update, &quoratepb.NewURLs{Id: uint64(u.ID), PeerUrls: u.PeerURLs})
	}
	return message
}

func numbers(ids []consensus.MemberID) []uint64 {
	var list []uint64
	for _, id := range ids {
		list = append(list, uint64(id))
	}
	return list
}
