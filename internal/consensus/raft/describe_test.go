package raft_test

import (
	"fmt"
	"strings"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/raft"
)

var kindNames = map[consensus.MessageKind]string{
	consensus.MsgPreVote: "pre-vote?", consensus.MsgPreVoteReply: "pre-vote", consensus.MsgVote: "vote?",
	consensus.MsgVoteReply: "vote", consensus.MsgAppend: "append", consensus.MsgAppendReply: "ack",
	consensus.MsgHeartbeat: "heartbeat", consensus.MsgHeartbeatReply: "echo", consensus.MsgPropose: "propose",
	consensus.MsgProposeReply: "refused", consensus.MsgRead: "read?", consensus.MsgReadReply: "read",
	consensus.MsgSnapshotOffer: "snapshot?", consensus.MsgSnapshotReply: "snapshot", consensus.MsgTimeoutNow: "timeout-now",
	consensus.MsgTransfer: "transfer?", consensus.MsgRemoved: "removed",
	consensus.MsgAcknowledged: "holds", consensus.MsgLogQuery: "log?", consensus.MsgLogQueryReply: "log",
	consensus.MsgRecord: "record", consensus.MsgRecorded: "recorded", consensus.MsgFastPropose: "propose-fast",
	consensus.MsgFast: "fast", consensus.MsgOrphans: "orphans",
}

var changeNames = []string{"", "add-voter", "add-learner", "promote", "remove", "update", "demote", "bind", "cordon",
	"uncordon"}

// describe writes a message in one line: the fields that its kind uses, if they are set.
func describe(m *message) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%v->%v %s term=%d", m.From, m.To, kindNames[m.Kind], m.Term)
	say := func(present bool, format string, args ...any) {
		if present {
			fmt.Fprintf(&b, " "+format, args...)
		}
	}
	switch m.Kind {
	case consensus.MsgAppend:
		say(true, "after=%v", m.Prev)
	case consensus.MsgVote, consensus.MsgPreVote:
		say(true, "log=%v commit=%d", m.Last, m.Committed.Index)
	case consensus.MsgAppendReply, consensus.MsgHeartbeatReply, consensus.MsgSnapshotReply, consensus.MsgAcknowledged:
		say(m.Match.Index > 0, "index=%d", m.Match.Index)
	}
	say(m.Refused.Index > 0, "index=%d", m.Refused.Index)
	say(m.Reject, "NO")
	say(m.Reject && m.Kind == consensus.MsgAppendReply, "hint=%v", m.Hint)
	say(m.Force, "force")
	switch m.Kind {
	case consensus.MsgAppend, consensus.MsgHeartbeat:
		say(true, "commit=%d", m.Commit)
	}
	say(m.Round > 0, "round=%d", m.Round)
	say(m.Query > 0, "query=%d", m.Query)
	say(m.Kind == consensus.MsgLogQueryReply, "last=%v", m.Last)
	say(m.Unlogged, "and more")
	say(m.Target != 0, "to=%v", m.Target)
	if m.Snapshot != nil {
		say(true, "%s", describeMeta(m.Snapshot))
	}
	for i := range m.Entries {
		say(true, "%s", describeEntry(&m.Entries[i]))
	}
	for i := range m.Proposals {
		say(true, "%s", describeProposal(&m.Proposals[i]))
	}
	for i := range m.Records {
		say(true, "%s", describeRecord(&m.Records[i]))
	}
	for i := range m.Verdicts {
		say(true, "%s", describeVerdict(&m.Verdicts[i], m.Kind == consensus.MsgOrphans))
	}
	for i := range m.Refusals {
		say(true, "#%d:%s", m.Refusals[i].ID.Sequence, describeRefusal(&m.Refusals[i]))
	}
	for i := range m.Reads {
		say(true, "read %d", m.Reads[i].ID)
		say(m.Kind == consensus.MsgReadReply && !m.Reject, "at %d", m.Reads[i].Index)
	}
	return b.String()
}

func describeRecord(r *consensus.Record) string {
	return fmt.Sprintf("holds %s@%d of term %d", r.Payload, r.Revision, r.Term)
}

func describeVerdict(v *consensus.Verdict, asks bool) string {
	switch {
	case asks:
		return fmt.Sprintf("#%d?", v.Proposal.Sequence)
	case v.Refusal != consensus.RefusedNot:
		return fmt.Sprintf("#%d:%v", v.Proposal.Sequence, v.Refusal)
	case len(v.Reply) > 0:
		return fmt.Sprintf("#%d@%d=%s", v.Proposal.Sequence, v.Revision, v.Reply)
	}
	return fmt.Sprintf("#%d@%d", v.Proposal.Sequence, v.Revision)
}

// describeRefusal also names the configuration in force, if the proposer knew another one.
func describeRefusal(r *consensus.Refusal) string {
	s := reason(r.Reason)
	if r.Reason == consensus.ReasonStaleConfig {
		s += fmt.Sprintf(", %v is in force", r.Config)
	}
	return s
}

func describeProposal(p *consensus.Proposal) string {
	if p.Kind != consensus.EntryConfig {
		return string(p.Payload)
	}
	request, err := consensus.DecodeChangeRequest(p.Payload)
	if err != nil {
		return err.Error()
	}
	var words []string
	if request.Protocol != consensus.ProtocolAuto {
		words = append(words, "by", request.Protocol.String())
	}
	if request.Abort {
		words = append(words, "abort")
	}
	for _, step := range request.Steps {
		words = append(words, fmt.Sprintf("%s %v", changeNames[step.Kind], step.Member.ID))
	}
	return strings.Join(words, " ")
}

func describeEntry(e *entry) string {
	switch e.Kind {
	case consensus.EntryNoop:
		if id, err := consensus.DecodeConfigID(e.Payload); err == nil {
			return fmt.Sprintf("%v:settles %v", e.Position(), id)
		}
		return fmt.Sprintf("%v", e.Position())
	case consensus.EntryConfig:
		change, err := consensus.DecodeConfigChange(e.Payload)
		if err != nil {
			return fmt.Sprintf("%v:%v", e.Position(), err)
		}
		return fmt.Sprintf("%v:%s", e.Position(), describeConfig(&change.Config))
	case consensus.EntryAbort:
		return fmt.Sprintf("%v:abort #%d", e.Position(), e.Proposal.Sequence)
	}
	if e.ExactRevision > 0 {
		return fmt.Sprintf("%v:%s@%d", e.Position(), e.Payload, e.ExactRevision)
	}
	return fmt.Sprintf("%v:%s", e.Position(), e.Payload)
}

// describeMeta describes a snapshot; without its configuration if that is the first of the cluster.
func describeMeta(m *consensus.SnapshotMeta) string {
	s := m.Position.String()
	if m.Protocol != consensus.ProtocolAuto {
		s += fmt.Sprintf(" config=%v by %v %s", m.ConfigID, m.Protocol, describeConfig(&m.Config))
	}
	if m.Open {
		s += " open"
	}
	if len(m.Tombs) > 0 {
		s += fmt.Sprintf(" tombs%v", m.Tombs)
	}
	return s
}

func describeConfig(c *consensus.Config) string {
	s := fmt.Sprintf("voters%v", c.Voters)
	if c.IsJoint() {
		s += fmt.Sprintf("outgoing%v", c.Outgoing)
	}
	if len(c.LearnersNext) > 0 {
		s += fmt.Sprintf("next%v", c.LearnersNext)
	}
	if len(c.Learners) > 0 {
		s += fmt.Sprintf("learners%v", c.Learners)
	}
	return s
}

func reason(r consensus.RefusalReason) string {
	names := []string{
		"none", "no leader", "busy", "stale config", "change pending", "member exists", "url exists", "not found",
		"member removed", "not a learner", "learner lags", "last voter", "quorum lost", "too many learners", "bad request",
		"not by this protocol", "too late", "no change",
	}
	if int(r) < len(names) {
		return names[r]
	}
	return fmt.Sprintf("reason %d", r)
}

// trace prints all of an output but its messages.
func (n *node) trace(out *raft.Output) {
	if n.c.trace == nil {
		return
	}
	say := func(format string, args ...any) { n.c.printf("%v: "+format, append([]any{n.id}, args...)...) }
	for _, e := range out.Events {
		say("%v", e)
	}
	if out.Config != nil {
		say("config %v %s in force", out.Config.ID, describeConfig(&out.Config.Config))
	}
	if n.slowDisk && out.Seq != 0 {
		what := ""
		if len(out.Entries) > 0 {
			what = fmt.Sprintf(" of %v to %v", out.Entries[0].Position(), out.Entries[len(out.Entries)-1].Position())
		}
		say("persist request %d%s", out.Seq, what)
	}
	for i := range out.Apply {
		say("apply %s", describeEntry(&out.Apply[i]))
	}
	for i := range out.Decided {
		say("won #%d at revision %d: %s", out.Decided[i].Proposal.Sequence, out.Decided[i].Revision, out.Decided[i].Reply)
	}
	for _, read := range out.Reads {
		say("read %d answered: %d", read.ID, read.Index)
	}
	for _, id := range out.FailedReads {
		say("read %d failed", id)
	}
	for _, refusal := range out.Refusals {
		say("proposal #%d refused: %s", refusal.ID.Sequence, describeRefusal(&refusal))
	}
}
