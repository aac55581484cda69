package golden_test

import (
	"crypto/sha256"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/kv/apply"
	"github.com/quorate/quorate/internal/kv/mvcc"
	"github.com/quorate/quorate/internal/member/datadir"
)

// dumper prints what a directory holds, a line for each thing.
type dumper struct {
	t    *testing.T
	text strings.Builder
}

func (d *dumper) linef(format string, args ...any) { fmt.Fprintf(&d.text, format+"\n", args...) }

// dump opens the directory of a member, applies the entries that are known to be committed, and prints all. It changes the
// directory.
func dump(t *testing.T, dir string) string {
	t.Helper()
	return dumpBy(t, place(dir))
}

// dumpBy is dump by the build whose options these are.
func dumpBy(t *testing.T, options datadir.Options) string {
	t.Helper()
	data, err := datadir.Open(options)
	must(t, err)
	defer func() { must(t, data.Close()) }()
	d := &dumper{t: t}
	d.linef("cluster %v, member %v, storage %v, epoch %v, opened %d times", data.Identity.Cluster, data.Identity.Member,
		data.Identity.Storage, data.Identity.Epoch, data.Boots-1)
	d.log(data)
	applied := data.Machine.Applied().Index
	d.linef("applied on disk: %v", data.Machine.Applied())
	for _, e := range data.Restored.Entries {
		if e.Index > applied && e.Index <= data.Restored.Hard.Commit {
			if _, err := data.Machine.Apply([]consensus.Entry{e}); err != nil {
				t.Fatal(err)
			}
		}
	}
	d.state(data.Machine)
	d.users(data.Machine)
	d.keys(data.Machine.Store(), 0)
	d.changes(data.Machine.Store())
	return d.text.String()
}

func (d *dumper) log(data *datadir.Data) {
	r := &data.Restored
	d.linef("log after %v, configuration %v: term %d, vote %v, committed %d", r.Base.Position, r.Base.ConfigID, r.Hard.Term,
		r.Hard.Vote, r.Hard.Commit)
	for i := range r.Entries {
		e := &r.Entries[i]
		d.linef("entry %v: %v of %v, proposer %v, answered by %v, revision %d, payload %s", e.Position(), e.Kind, e.Proposal, e.Proposer,
			e.Answered, e.ExactRevision, brief(e.Payload))
	}
	for i := range r.Records {
		record := &r.Records[i]
		d.linef("held for %v: revision %d, term %d, configuration %v, payload %s", record.Proposal, record.Revision, record.Term,
			record.Config, brief(record.Payload))
	}
}

func (d *dumper) state(m *apply.Machine) {
	chain, config := m.Chain(), m.SnapshotMeta()
	d.linef("applied %v, chain since %d: %016x", m.Applied(), chain.Since, chain.Sum)
	rise := m.Rise()
	d.linef("level %d, policy %v, born at %d, level %d soaked for %d s", m.ActiveLevel(), rise.Policy, rise.Born, rise.Level, rise.Seconds)
	d.linef("configuration %v, protocol %v, open %t, tombs %v: voters %v, outgoing %v, learners %v", config.ConfigID, config.Protocol,
		config.Open, config.Tombs, config.Config.Voters, config.Config.Outgoing, config.Config.Learners)
	for _, member := range config.Config.Members {
		d.linef("member %v: name %q, URLs %q, former ones %q, storage %v, marks %t, %t, %t", member.ID, member.Name, member.PeerURLs,
			member.FormerURLs, member.Storage, member.Promote, member.Joining, member.Cordoned)
		if p, known := m.Published(member.ID); known {
			d.linef("published by %d: name %q, URLs %q, etcd %q, zone %q, build %q, level %d, memory %d", p.Member, p.Name, p.ClientURLs,
				p.Version, p.Zone, p.Build, p.Level, p.Memory)
		}
	}
	for _, tomb := range m.Tombstones() {
		d.linef("member %v was removed by entry %d", tomb.Member, tomb.Index)
	}
	for _, alarm := range m.Alarms() {
		d.linef("alarm %d of member %d", alarm.Kind, alarm.Member)
	}
	for _, job := range m.Jobs() {
		d.linef("job %x version %d: %s", job.ID, job.Version, job.Body)
	}
	for _, session := range []consensus.SessionID{of(1), of(2), of(3), client} {
		for sequence := uint64(1); m.SessionOpen(session); sequence++ {
			result, found, err := m.Result(consensus.ProposalID{Session: session, Sequence: sequence})
			must(d.t, err)
			if !found {
				d.linef("session %v has %d results", session, sequence-1)
				break
			}
			d.linef("result %d of %v: revision %d, %s", sequence, session, result.Revision, brief(result.Append(nil)))
		}
	}
	for _, lease := range m.Leases().Leases(time.Time{}) {
		var keys []string
		must(d.t, m.VisitLeaseKeys(lease.ID, func(key []byte) bool { keys = append(keys, string(key)); return true }))
		d.linef("lease %d of %d s: %q", lease.ID, lease.TTLSeconds, keys)
	}
}

func (d *dumper) users(m *apply.Machine) {
	users := m.Users()
	d.linef("roles %q; users: enabled %t, revision %d, secret %q", users.Roles(), users.Enabled(), users.Revision(), users.Secret())
	for _, name := range users.Users() {
		user, _ := users.User(name)
		d.linef("user %q: %s, no password %t, since %d, roles %q", name, user.Hash, user.NoPassword, user.Since, user.Roles)
	}
	for _, name := range users.Roles() {
		role, _ := users.Role(name)
		for _, p := range role.Permissions {
			d.linef("role %q: access %d from %q to %q", name, p.Access, p.Key, p.End)
		}
	}
	for _, token := range users.JoinTokens(0) {
		d.linef("join token %s of %q: hash %x, expires %d, uses %d, used by %x", token.ID, token.Owner, token.Hash, token.Expires, token.Uses,
			token.UsedBy)
	}
}

// keys prints the pairs at a revision, zero: the present one.
func (d *dumper) keys(store *mvcc.Store, at kv.Revision) {
	found, revision, err := store.Range(&kv.RangeOp{Key: []byte{0}, End: []byte{0}, Revision: at})
	must(d.t, err)
	if at == 0 {
		at = revision
	}
	d.linef("revision %d", at)
	for i := range found.KVs {
		pair := &found.KVs[i]
		d.linef("key %q: created %d, changed %d, version %d, lease %d, value %s", pair.Key, pair.CreateRevision, pair.ModRevision,
			pair.Version, pair.Lease, brief(pair.Value))
	}
}

func (d *dumper) changes(store *mvcc.Store) {
	hash, compacted, _, err := store.HashKV(0)
	must(d.t, err)
	d.linef("compacted %d, hash %08x", compacted, hash)
	changes, _, err := store.EventsSince(mvcc.EventQuery{From: max(compacted, 1)})
	must(d.t, err)
	for _, change := range changes {
		for i := range change.Events {
			event := &change.Events[i]
			d.linef("change %d: kind %d, %q, version %d, value %s", change.Revision, event.Kind, event.KV.Key, event.KV.Version,
				brief(event.KV.Value))
		}
	}
}

// brief is a short text for bytes that differ.
func brief(b []byte) string {
	if len(b) <= 20 {
		return fmt.Sprintf("%q", b)
	}
	return fmt.Sprintf("of %d bytes, SHA-256 %.8x", len(b), sha256.Sum256(b))
}
