package golden_test

import (
	"fmt"
	"time"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/test/golden/frozen"
)

// Values that are given to many fields. Numbers of 300 take two bytes as varints.
var (
	aPosition = consensus.Position{Index: 300, Term: 7}
	aConfigID = consensus.ConfigID{Index: 300, Term: 7, Stage: 1}
	aSession  = consensus.SessionID{Member: 0x0102030405060708, Number: 1 << 32}
	aProposal = consensus.ProposalID{Session: aSession, Sequence: 300}
	ofAClient = consensus.ProposalID{Session: consensus.ClientSession(0x11, 2), Sequence: 5}
)

// joint is a configuration with all that one may have.
func joint() consensus.Config {
	return consensus.Config{
		Voters: []consensus.MemberID{1, 4}, Outgoing: []consensus.MemberID{1, 2, 3}, Learners: []consensus.MemberID{5},
		LearnersNext: []consensus.MemberID{2},
		Members: []consensus.Member{
			{ID: 1, Name: "m1", PeerURLs: []string{"http://a:1", "http://b:1"}, Storage: consensus.StorageID{1, 2, 3}},
			{ID: 2, Name: "m2", PeerURLs: []string{"http://a:2"}, FormerURLs: []string{"http://c:2"}, Cordoned: true},
			{ID: 3}, {ID: 4, Name: "m4", Joining: true}, {ID: 5, Name: "m5", Promote: true},
		},
	}
}

func aChange() consensus.ConfigChange {
	return consensus.ConfigChange{Protocol: consensus.ProtocolJointEarly, Abort: true, Replaces: aConfigID, Config: joint(),
		Tombs: []consensus.MemberID{3}}
}

func aRequest() consensus.ChangeRequest {
	r := consensus.ChangeRequest{Protocol: consensus.ProtocolJoint, Expected: aConfigID, Abort: true}
	for kind := consensus.ChangeAddVoter; kind <= consensus.ChangeUncordon; kind++ {
		r.Steps = append(r.Steps, consensus.ChangeStep{Kind: kind, Member: consensus.Member{ID: consensus.MemberID(kind)}})
	}
	r.Steps[0].Member = joint().Members[0]
	return r
}

func aMeta() consensus.SnapshotMeta {
	return consensus.SnapshotMeta{Position: aPosition, Config: joint(), ConfigID: aConfigID, Protocol: consensus.ProtocolApply,
		Open: true, Tombs: []consensus.MemberID{3, 9}}
}

// records are witness records: of a member's proposal, and of a client's.
func records() []consensus.Record {
	return []consensus.Record{
		{Attempt: consensus.AttemptOf(aProposal, 12, []byte("command")), Term: 7, Config: aConfigID, Payload: []byte("command")},
		{Attempt: consensus.AttemptOf(ofAClient, 13, []byte("other")), Term: 7, Config: aConfigID, Payload: []byte("other")},
	}
}

func entries() []named[consensus.Entry] {
	payload, change := []byte("payload"), aChange()
	return []named[consensus.Entry]{
		{"first of a term", consensus.Entry{Index: 1, Term: 1, Kind: consensus.EntryNoop}},
		{"command", consensus.Entry{Index: 300, Term: 7, Kind: consensus.EntryCommand, Proposal: aProposal,
			Proposer: aSession.Member, Payload: payload}},
		{"command of another proposer, on the fast path", consensus.Entry{Index: 300, Term: 7, Kind: consensus.EntryCommand,
			Proposal: ofAClient, Proposer: 2, Answered: 3, ExactRevision: 300, Payload: payload}},
		{"configuration", consensus.Entry{Index: 2, Term: 1, Kind: consensus.EntryConfig,
			Payload: consensus.AppendConfigChange(nil, &change)}},
		{"abort", consensus.Entry{Index: 2, Term: 1, Kind: consensus.EntryAbort, Proposal: aProposal}},
	}
}

func hardStates() []named[consensus.HardState] {
	return []named[consensus.HardState]{
		{"plain", consensus.HardState{Term: 7, Vote: 3, Commit: 300}},
		{"with a promise", consensus.HardState{Term: 7, Vote: 3, Commit: 300, Promise: uint64(time.Second / time.Microsecond)}},
	}
}

// messages has each kind of message with the fields that it usually has, and each field alone.
func messages() []named[consensus.Message] {
	var all []named[consensus.Message]
	for kind := consensus.MsgPreVote; kind <= consensus.MsgOrphans; kind++ {
		all = append(all, named[consensus.Message]{fmt.Sprintf("kind %d", kind),
			consensus.Message{Kind: kind, From: 0x0102030405060708, To: 2, Term: 7}})
	}
	verdict := consensus.Verdict{Attempt: records()[0].Attempt, Refusal: consensus.RefusedConflict, Reply: []byte("result")}
	ofClient := consensus.Verdict{Attempt: records()[1].Attempt}
	meta := aMeta()
	proposals := []consensus.Proposal{
		{ID: aProposal, Proposer: aSession.Member, Kind: consensus.EntryCommand, Payload: []byte("a")},
		{ID: ofAClient, Proposer: 2, Kind: consensus.EntryConfig, Payload: []byte("b")},
	}
	whole := []consensus.Entry{entries()[1].value, entries()[2].value}
	refusal := consensus.Refusal{ID: aProposal, Reason: consensus.ReasonStaleConfig, Config: aConfigID}
	for _, m := range []named[consensus.Message]{
		{"config", consensus.Message{Config: aConfigID}}, {"commit", consensus.Message{Commit: 300}},
		{"durable", consensus.Message{Durable: 300}}, {"prev", consensus.Message{Prev: aPosition}},
		{"entries", consensus.Message{Entries: whole}}, {"round", consensus.Message{Round: 300}},
		{"last", consensus.Message{Last: aPosition}}, {"match", consensus.Message{Match: aPosition}},
		{"reject", consensus.Message{Reject: true}},
		{"refused", consensus.Message{Mismatch: consensus.Mismatch{Refused: aPosition}}},
		{"hint", consensus.Message{Mismatch: consensus.Mismatch{Hint: aPosition}}},
		{"received", consensus.Message{FollowerState: consensus.FollowerState{Received: 300}}},
		{"patience", consensus.Message{FollowerState: consensus.FollowerState{Patience: 300}}},
		{"waited for", consensus.Message{Waited: consensus.Waited{WaitedFor: 0x0102030405060708}}},
		{"disk took", consensus.Message{Waited: consensus.Waited{DiskTook: 300}}},
		{"all took", consensus.Message{Waited: consensus.Waited{AllTook: 300}}},
		{"committed", consensus.Message{Ballot: consensus.Ballot{Committed: aPosition}}},
		{"records", consensus.Message{Ballot: consensus.Ballot{Records: records()}}},
		{"query", consensus.Message{LogQuery: consensus.LogQuery{Query: 300}}},
		{"unlogged", consensus.Message{LogQuery: consensus.LogQuery{Unlogged: true}}},
		{"proposals", consensus.Message{Proposals: proposals}}, {"refusals", consensus.Message{Refusals: []consensus.Refusal{refusal}}},
		{"due", consensus.Message{Due: 1 << 60}}, {"verdicts", consensus.Message{Verdicts: []consensus.Verdict{verdict, ofClient}}},
		{"reads", consensus.Message{Reads: []consensus.ReadIndex{{ID: 300, Index: 7}}}}, {"snapshot", consensus.Message{Snapshot: &meta}},
		{"target", consensus.Message{Target: 3}}, {"force", consensus.Message{Force: true}},
	} {
		m.value.Kind, m.value.From, m.value.To, m.value.Term = consensus.MsgAppend, 1, 2, 7
		all = append(all, named[consensus.Message]{"field " + m.name, m.value})
	}
	return all
}

// ofConsensus are the values of package consensus, which log, store and network share.
func ofConsensus() []frozen.Value {
	change, request, meta := aChange(), aRequest(), aMeta()
	attempt := consensus.AttemptIDOf(records()[0].Attempt)
	values := []frozen.Value{
		{Name: "configuration", Bytes: consensus.AppendConfig(nil, &change.Config)},
		{Name: "configuration change", Bytes: consensus.AppendConfigChange(nil, &change)},
		{Name: "change request", Bytes: consensus.AppendChangeRequest(nil, &request)},
		{Name: "configuration id", Bytes: consensus.AppendConfigID(nil, aConfigID)},
		{Name: "snapshot metadata", Bytes: consensus.AppendSnapshotMeta(nil, &meta)},
		{Name: "attempt id", Bytes: attempt[:]},
	}
	for i, record := range records() {
		values = append(values, frozen.Value{Name: fmt.Sprintf("witness record %d", i+1), Bytes: consensus.AppendRecord(nil, &record)})
	}
	values = append(values, encode("entry", entries(), consensus.AppendEntry)...)
	values = append(values, encode("hard state", hardStates(), consensus.AppendHardState)...)
	return append(values, encode("message", messages(), consensus.AppendMessage)...)
}
