package golden_test

import (
	"crypto/sha256"
	"fmt"
	"strings"
	"testing"

	"github.com/quorate/quorate/internal/auth"
	"github.com/quorate/quorate/internal/base/level"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/reconfig"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/kv/apply"
	"github.com/quorate/quorate/internal/membership"
	"github.com/quorate/quorate/internal/storage/engine"
)

// Whose data it is.
var (
	cluster = consensus.ClusterID(0x51554f5241544531)
	owner   = consensus.Identity{Cluster: cluster, Member: 1, Storage: consensus.StorageID{15: 1}}
	client  = consensus.ClientSession(0xc1, 1)
)

// founders are the members that the cluster begins with.
func founders() consensus.Config {
	c := consensus.Config{Voters: []consensus.MemberID{1, 2, 3}}
	for id := consensus.MemberID(1); id <= 3; id++ {
		c.Members = append(c.Members, consensus.Member{ID: id, Name: fmt.Sprintf("m%d", id),
			PeerURLs: []string{fmt.Sprintf("http://127.0.0.1:%d", 2380+id)}, Storage: consensus.StorageID{15: byte(id)}})
	}
	return c
}

// script makes the entries of a log, one after the other.
type script struct {
	entries  []consensus.Entry
	sequence map[consensus.SessionID]uint64
	config   consensus.Config
	configID consensus.ConfigID
}

func newScript() *script {
	return &script{sequence: map[consensus.SessionID]uint64{}, config: founders(), configID: consensus.FoundingID()}
}

// of is the first session of a member.
func of(id consensus.MemberID) consensus.SessionID {
	return consensus.SessionID{Member: id, Number: 1 << 32}
}

func (s *script) add(e consensus.Entry) *consensus.Entry {
	e.Index, e.Term = consensus.Index(len(s.entries)+1), 2
	s.entries = append(s.entries, e)
	return &s.entries[len(s.entries)-1]
}

// by appends a command of a session.
func (s *script) by(session consensus.SessionID, c kv.Command) *consensus.Entry {
	s.sequence[session]++
	return s.add(consensus.Entry{Kind: consensus.EntryCommand, Payload: c.Append(nil), Proposer: session.Member,
		Proposal: consensus.ProposalID{Session: session, Sequence: s.sequence[session]}})
}

// do appends a command of member 1.
func (s *script) do(c kv.Command) { s.by(of(1), c) }

func (s *script) put(key, value string, lease kv.LeaseID) {
	s.do(kv.Command{Put: &kv.PutOp{Key: []byte(key), Value: []byte(value), Lease: lease}})
}

// users appends changes of users and roles by root.
func (s *script) users(changes ...*auth.Change) {
	for _, change := range changes {
		s.do(kv.Command{Auth: change, By: auth.Credentials{Member: true}})
	}
}

func (s *script) open(session consensus.SessionID) {
	s.by(session, kv.Command{SessionOpen: &kv.SessionOpenOp{Member: uint64(session.Member), Number: session.Number}})
}

func (s *script) publish(id uint64, build string, l level.Level) {
	s.do(kv.Command{Publish: &kv.PublishOp{Member: id, Name: fmt.Sprintf("m%d", id), Version: "3.7.1", Build: build, Level: l,
		ClientURLs: []string{fmt.Sprintf("http://127.0.0.1:%d", 2370+id)}, Zone: "z1", Memory: 1 << 30}})
}

// levelView are the members, for a command whose effect depends on them.
func (s *script) levelView(generation uint64) kv.LevelView {
	of := kv.LevelView{Config: uint64(s.configID.Index), Generation: generation}
	for _, id := range s.config.IDs() {
		of.IDs = append(of.IDs, uint64(id))
	}
	return of
}

// rootHash is bcrypt of rootPassword, at its least cost.
const (
	rootPassword = "golden"
	rootHash     = "$2a$04$8RHVPLNV4WF2sHQHBztItezyQEIhRB78DwLIz7cZHyTBC8K/TCslO"
)

// begin has what a cluster does first, and keys with every kind of version.
func (s *script) begin(large bool) {
	s.add(consensus.Entry{Kind: consensus.EntryNoop})
	for id := consensus.MemberID(1); id <= 3; id++ {
		s.open(of(id))
		s.publish(uint64(id), "0.1.0", level.First)
	}
	s.open(client)
	s.do(kv.Command{LevelPolicy: &kv.LevelPolicyOp{Policy: level.Policy{Kind: level.PolicySoak, Seconds: 86400}, Initial: true,
		Of: s.levelView(0)}})
	s.do(kv.Command{LeaseGrant: &kv.LeaseGrantOp{ID: 7, TTLSeconds: 1 << 30}})
	s.do(kv.Command{LeaseGrant: &kv.LeaseGrantOp{ID: -7, TTLSeconds: 1 << 30}})
	s.do(kv.Command{LeaseGrant: &kv.LeaseGrantOp{ID: 8, TTLSeconds: 60}})
	s.put("plain", "1", 0)
	s.put("zero\x00byte\x00\x00", "2", 0)
	s.put("empty", "", 0)
	s.put("leased/a", "3", 7)
	s.put("leased/b", "4", -7)
	s.put("gone with its lease", "5", 8)
	for i := range 20 {
		s.put(fmt.Sprintf("often/%d", i%4), strings.Repeat("x", i), 0)
	}
	if large {
		for i := range 3 {
			s.put(fmt.Sprintf("large/%d", i), noise(i, 40), 0)
		}
	}
	s.do(kv.Command{Delete: &kv.DeleteOp{Key: []byte("often/3"), PrevKV: true}})
	s.do(kv.Command{Txn: &kv.TxnOp{
		Compares: []kv.Compare{{Key: []byte("plain"), Target: kv.CompareValue, Value: []byte("1")}},
		Then: []kv.Op{{Put: &kv.PutOp{Key: []byte("txn/a"), Value: []byte("6")}}, {Put: &kv.PutOp{Key: []byte("txn/b"), Lease: 7}},
			{Range: &kv.RangeOp{Key: []byte("plain")}}},
	}})
	s.do(kv.Command{LeaseRevoke: &kv.LeaseRevokeOp{ID: 8}})
	job := aJob()
	s.do(kv.Command{Job: &kv.JobOp{ID: uint64(job.ID), Body: job.Encode()}})
	s.do(kv.Command{Compact: &kv.CompactOp{Revision: 20}})
}

// noise is a text of so many lines that does not become much smaller when it is packed.
func noise(seed, lines int) string {
	var text strings.Builder
	for line := range lines {
		fmt.Fprintf(&text, "%x\n", sha256.Sum256([]byte{byte(seed), byte(line)}))
	}
	return text.String()
}

// aJob has every field that a job may have on disk.
func aJob() *membership.Job {
	return &membership.Job{ID: 0x10b, State: membership.StateDone, Phase: "settle", Message: "m4 never came", Created: 1764374400000, Started: 1764374400001,
		Updated: 1764374400002, Ended: 1764374400003,
		WaitedMS: 300, Phases: []membership.Phase{"join", "settle"}, Undo: "remove", Expired: true, CancelAsked: true, Care: true,
		Names: []membership.Named{{ID: 2, Name: "m2"}}, Config: aConfigID, Final: aConfigID,
		Spec: membership.Spec{Kind: membership.KindReplace, Remove: []consensus.MemberID{2}, Promote: []consensus.MemberID{3},
			Add:    []membership.Newcomer{{ID: 4, Name: "m4", PeerURLs: []string{"http://127.0.0.1:2384"}, Learner: true, Cordoned: true}},
			Demote: []consensus.MemberID{3}, Update: []consensus.Member{{ID: 3, PeerURLs: []string{"http://127.0.0.1:2393"}}},
			Cordon: []consensus.MemberID{3}, Uncordon: []consensus.MemberID{3}, Drain: []consensus.MemberID{3},
			Protocol: consensus.ProtocolJoint, Expected: aConfigID, JoinWithinMS: 5000, Force: "lost", After: []membership.JobID{0x10a}}}
}

// fast appends a put of member 2 and one of a client, which the fast path decided at the next two revisions, and an abort.
// It returns their witness records.
func (s *script) fast(revision uint64) (held []consensus.Record) {
	for i, session := range []consensus.SessionID{of(2), client} {
		e := s.by(session, kv.Command{Put: &kv.PutOp{Key: fmt.Appendf(nil, "fast/%d", i), Value: []byte("7")}})
		e.Answered, e.ExactRevision = 1, revision+uint64(i)
		held = append(held, consensus.Record{Attempt: e.Attempt(), Term: e.Term, Config: s.configID, Payload: e.Payload})
	}
	s.sequence[client]++
	s.add(consensus.Entry{Kind: consensus.EntryAbort, Proposal: consensus.ProposalID{Session: client, Sequence: s.sequence[client]}})
	return held
}

// join appends a joint configuration in which voters replace those in force.
func (s *script) join(voters ...consensus.MemberID) {
	target := s.config.Clone()
	target.Voters, target.Outgoing = voters, s.config.Voters
	change := consensus.ConfigChange{Protocol: consensus.ProtocolJoint, Replaces: s.configID, Config: target}
	s.configure(&change)
}

// leave appends the end of the joint configuration.
func (s *script) leave() {
	change := reconfig.Leave(&s.config, s.configID, consensus.ProtocolJoint)
	s.configure(&change)
}

func (s *script) configure(change *consensus.ConfigChange) {
	e := s.add(consensus.Entry{Kind: consensus.EntryConfig, Payload: consensus.AppendConfigChange(nil, change)})
	s.config, s.configID = change.Config, consensus.ConfigID{Index: e.Index, Term: e.Term}
}

// end has an upgrade of member 1 that was not finished, users, and an alarm: nothing that makes the store grow comes after it.
func (s *script) end(large bool) {
	s.publish(1, "0.2.0", 255) // whatever the next level of a later build is, it may be raised
	s.do(kv.Command{Soak: &kv.SoakOp{Level: level.First + 1, Of: s.levelView(1)}})
	s.do(kv.Command{Soak: &kv.SoakOp{Level: level.First + 1, Seconds: 900, Of: s.levelView(2)}})
	all := auth.Permission{Access: auth.ReadWrite, Key: []byte("alice/"), End: []byte("alice0")}
	s.users(
		&auth.Change{Kind: auth.UserAdd, User: auth.RootUser, Hash: []byte(rootHash)},
		&auth.Change{Kind: auth.RoleAdd, Role: auth.RootRole},
		&auth.Change{Kind: auth.UserGrantRole, User: auth.RootUser, Role: auth.RootRole},
		&auth.Change{Kind: auth.UserAdd, User: "alice", NoPassword: true},
		&auth.Change{Kind: auth.RoleAdd, Role: "writer"},
		&auth.Change{Kind: auth.GrantPermission, Role: "writer", Permission: all},
		&auth.Change{Kind: auth.UserGrantRole, User: "alice", Role: "writer"},
		&auth.Change{Kind: auth.Enable, Secret: []byte("0123456789abcdef0123456789abcdef")},
		&auth.Change{Kind: auth.JoinTokenAdd, Now: 1, Token: &auth.JoinToken{ID: "0000000a", Hash: [32]byte{2}, Expires: 1 << 60, Uses: 2,
			Owner: auth.RootUser}},
		&auth.Change{Kind: auth.JoinTokenUse, Now: 2, Newcomer: [32]byte{3}, Token: &auth.JoinToken{ID: "0000000a", Hash: [32]byte{2}}},
	)
	s.do(kv.Command{Put: &kv.PutOp{Key: []byte("alice/1"), Value: []byte("8")}, By: auth.Credentials{User: "alice", Revision: 9}})
	if large {
		s.do(kv.Command{Put: &kv.PutOp{Key: []byte("alice/2"), Value: []byte(noise(9, 60))}, By: auth.Credentials{User: "alice", Revision: 9}})
	}
	s.do(kv.Command{Alarm: &kv.AlarmOp{Activate: true, Member: 1, Kind: kv.AlarmNoSpace}, By: auth.Credentials{Member: true}})
}

// applyAll applies entries, and wants none rejected, nor skipped.
func applyAll(t *testing.T, m *apply.Machine, entries []consensus.Entry) {
	t.Helper()
	results, err := m.Apply(entries)
	if err != nil {
		t.Fatal(err)
	}
	for i := range results {
		if results[i].Err != nil && entries[i].Kind != consensus.EntryAbort {
			t.Fatalf("entry %v: %v", entries[i].Position(), results[i].Err)
		}
	}
}

// bootstrapped opens the state machine of member 1 of the cluster on an empty store.
func bootstrapped(t *testing.T, eng engine.Engine, options apply.Options) *apply.Machine {
	t.Helper()
	if err := apply.Bootstrap(eng, cluster, founders()); err != nil {
		t.Fatal(err)
	}
	if err := apply.SetOwner(eng, owner); err != nil {
		t.Fatal(err)
	}
	m, err := apply.Open(eng, options)
	if err != nil {
		t.Fatal(err)
	}
	return m
}
