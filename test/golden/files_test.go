package golden_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/auth"
	"github.com/quorate/quorate/internal/base/env"
	"github.com/quorate/quorate/internal/base/level"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/identity"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/kv/apply"
	"github.com/quorate/quorate/internal/member/datadir"
	"github.com/quorate/quorate/internal/member/datadir/datatest"
	"github.com/quorate/quorate/internal/storage/engine"
	"github.com/quorate/quorate/internal/storage/files/filestest"
	"github.com/quorate/quorate/internal/storage/snapshot"
	"github.com/quorate/quorate/internal/storage/wal"
	"github.com/quorate/quorate/test/golden/frozen"
)

// ofTheLog are the head of a segment and its records, each with one kind of item.
func ofTheLog(t *testing.T) (values []frozen.Value) {
	fs := filestest.NewMem()
	options := wal.Options{FS: fs, Dir: "wal", PackFrom: 1 << 30} // packed items are S2's, which may pack otherwise one day
	log, err := wal.Create(options, ofStorage())
	must(t, err)
	meta, record := aMeta(), records()[0]
	change := []consensus.RecordChange{{Record: record}}
	forget := []consensus.RecordChange{{Record: record, Forget: true}}
	entry := consensus.Entry{Index: meta.Position.Index + 1, Term: 7, Kind: consensus.EntryCommand, Proposal: aProposal,
		Payload: []byte("payload")}
	exact := consensus.Entry{Index: entry.Index + 1, Term: 7, Kind: consensus.EntryCommand, Proposal: record.Proposal,
		ExactRevision: record.Revision, Payload: record.Payload}
	hard := hardStates()[1].value
	batches := []named[wal.Batch]{
		{"reset", wal.Batch{Reset: &meta}}, {"entry", wal.Batch{Entries: []consensus.Entry{entry}}},
		{"hard state", wal.Batch{Hard: &hard}}, {"witness record", wal.Batch{Witness: consensus.WitnessRecords(change)}},
		{"entry by name", wal.Batch{Entries: []consensus.Entry{exact}}}, {"forget", wal.Batch{Witness: consensus.WitnessRecords(forget)}},
		{"boots", wal.Batch{Boots: 300}}, {"epoch", wal.Batch{Epoch: &consensus.Epoch{Number: 3, Recovery: [16]byte{1, 2}}}},
	}
	names := []string{"carried state of an empty log"}
	for i := range batches {
		must(t, log.Append(batches[i].value))
		names = append(names, batches[i].name)
	}
	must(t, log.Close())
	log, _, err = wal.Open(options)
	must(t, errors.Join(err, log.Append(wal.Batch{Witness: consensus.WitnessRecords(change)}), log.Close()))
	names = append(names, "mark of a close", "mark of an open", "witness record again", "mark of another close")

	const head = 72
	segment := readFile(t, fs, "wal/0000000000000001.wal")
	values = append(values, frozen.Value{Name: "log: head of a segment", Bytes: segment[:head]})
	at := head
	for _, name := range names {
		end := at + 16 + int(binary.LittleEndian.Uint32(segment[at+4:]))
		values = append(values, frozen.Value{Name: "log: " + name, Bytes: segment[at:end]})
		at = (end + 7) &^ 7
	}
	if rest := segment[at : at+64]; !bytes.Equal(rest, make([]byte, 64)) {
		t.Errorf("after its last record the segment has %x", rest)
	}
	return values
}

// ofStorage is an identity in which each byte is another.
func ofStorage() consensus.Identity {
	return consensus.Identity{Cluster: 0x1112131415161718, Member: 0x0102030405060708,
		Storage: consensus.StorageID{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16},
		Epoch:   consensus.Epoch{Number: 3, Recovery: [16]byte{1, 2}}}
}

// ofTheStore are the rows of all tables, after a history that has each kind of them.
func ofTheStore(t *testing.T) (values []frozen.Value) {
	eng, err := engine.OpenMem(engine.MemOptions{FS: filestest.NewMem(), Dir: "store"})
	must(t, err)
	m := bootstrapped(t, eng, apply.Options{})
	s := newScript()
	s.begin(false)
	applyAll(t, m, s.entries)
	done := len(s.entries)
	s.fast(uint64(m.Store().Revision()) + 1)
	s.join(1)
	applyAll(t, m, s.entries[done:])
	values = append(values, frozen.Value{Name: "row of a joint configuration", Bytes: row(t, eng, "sc")})
	done = len(s.entries)
	s.leave()
	s.end(false)
	applyAll(t, m, s.entries[done:])
	compacted, err := m.Store().CompactStep(1)
	must(t, err)
	values = append(values, frozen.Value{Name: "row of a compaction under way", Bytes: row(t, eng, "mk")})
	for !compacted {
		compacted, err = m.Store().CompactStep(10)
		must(t, err)
	}
	values = append(values, allRows(t, eng, "row")...)
	must(t, eng.Close())
	values = append(append(values, ofALeaseThatEnds(t)...), ofALoadedStore(t)...)
	return append(values, ofTheSecondLevel(t)...)
}

// ofTheSecondLevel are the rows that level 2 brings: changes with their authors, moments, limits, and those of the audit and of
// the continuous backup.
func ofTheSecondLevel(t *testing.T) []frozen.Value {
	eng, err := engine.OpenMem(engine.MemOptions{FS: filestest.NewMem(), Dir: "store"})
	must(t, err)
	m := bootstrapped(t, eng, apply.Options{})
	s := newScript()
	s.open(of(1))
	s.open(client)
	for id := uint64(1); id <= 3; id++ {
		s.publish(id, "1.1.0", level.Second)
	}
	s.put("a", "of the first level", 0)
	applyAll(t, m, s.entries)
	done := len(s.entries)
	s.do(kv.Command{Raise: &kv.RaiseOp{Level: level.Second, Finalize: true, Of: m.LevelView()}})
	s.do(kv.Command{LeaseGrant: &kv.LeaseGrantOp{ID: 7, TTLSeconds: 60}})
	s.put("b", "", 7)
	for _, user := range []string{"alice", strings.Repeat("u", kv.MostAuthorUser+1)} {
		s.by(client, kv.Command{Put: &kv.PutOp{Key: []byte("a")}, By: auth.Credentials{User: user, Revision: 9}})
	}
	s.put("a", "", 0)
	s.do(kv.Command{LeaseRevoke: &kv.LeaseRevokeOp{ID: 7, Term: 2}})
	s.do(kv.Command{Moment: &kv.MomentOp{Time: 1764374400000, Member: 1, Seen: 3}})
	for _, rule := range []kv.LimitRule{
		{Name: "counted", Prefixed: true, Prefix: []byte("a"), Bounds: [kv.LimitKinds]kv.Bound{kv.LimitQuotaKeys: {Set: true, Most: 300}}},
		{Name: "not-yet", Prefixed: true, Prefix: []byte("p/"), Bounds: [kv.LimitKinds]kv.Bound{kv.LimitQuotaBytes: {Set: true}}},
		{Name: "user", User: "bob", Bounds: [kv.LimitKinds]kv.Bound{kv.LimitWrites: {Set: true, Most: 7}}},
	} {
		s.do(kv.Command{Limit: &kv.LimitOp{Set: &rule}})
	}
	s.do(kv.Command{Limit: &kv.LimitOp{Count: "counted", From: []byte("a")}})
	s.do(kv.Command{Audit: &kv.AuditOp{Kind: kv.AuditPolicy, Policy: []byte(`{"rules": []}`)}})
	s.do(kv.Command{Audit: &kv.AuditOp{Kind: kv.AuditHead, Head: kv.AuditHeadRow{Member: 2, Chain: 300, Sequence: 300,
		At: 1_800_000_000_000, Sum: []byte("0123456789abcdef01234567"), File: []byte("audit.log")}}})
	backedUp(s)
	applyAll(t, m, s.entries[done:])
	rows := slices.DeleteFunc(allRows(t, eng, "row of level 2"), func(v frozen.Value) bool {
		return !slices.ContainsFunc([]string{`"r`, `"sz`, `"sm`, `"sy`, `"sg`, `"sd`, `"sb`}, func(table string) bool {
			return strings.Contains(v.Name, table)
		})
	})
	must(t, eng.Close())
	return rows
}

// backedUp is a backup whose row has something in each field.
func backedUp(s *script) {
	s.do(kv.Command{Backup: &kv.BackupOp{Kind: kv.BackupSet, Policy: kv.BackupPolicy{On: true, Place: "s3://b/p", Keep: "all",
		BaseSeconds: 3600, SealMillis: 1000, VerifySeconds: 86400, Since: 1_800_000_000_000, Recipients: "age1a",
		Secret: "0123456789abcdef0123456789abcdef"}}})
	s.do(kv.Command{Backup: &kv.BackupOp{Kind: kv.BackupAppoint, Turn: 1, Member: 3}})
	s.do(kv.Command{Backup: &kv.BackupOp{Kind: kv.BackupReport, Turn: 2, Member: 3, Progress: kv.BackupProgress{
		At: 1_800_000_001_000, Gaps: 2, Restorable: kv.BackupPoint{Index: 300, Revision: 200, Time: 1_800_000_000_900},
		Base: kv.BackupPoint{Index: 150, Revision: 100, Time: 1_800_000_000_500}, BaseHash: [32]byte{31: 9},
		Trouble: "full",
		Retention: kv.BackupRetention{At: 1_800_000_000_600, From: 1_799_000_000_000, Bases: 7, Removed: 300,
			Bytes: 1 << 33, Why: "no"},
		Gap: kv.BackupGap{After: 100, Until: 140, Time: 1_800_000_000_400}}}})
	for i, p := range []kv.BackupProof{
		{At: 1_800_000_001_300, Took: 70, Proven: true, Point: kv.BackupPoint{Index: 160, Revision: 90, Time: 1_800_000_000_300},
			Bases: 2, Entries: 70, Base: [32]byte{31: 7}, Damaged: 1, Why: "obj/7"},
		{At: 1_800_000_001_400, Took: 30, Failed: true, Why: "obj/8", Damaged: 1},
	} {
		number := uint64(i + 1)
		s.do(kv.Command{Backup: &kv.BackupOp{Kind: kv.BackupProve, Turn: number, Member: 4, Proof: kv.BackupProof{
			At: 1_800_000_001_200}}})
		s.do(kv.Command{Backup: &kv.BackupOp{Kind: kv.BackupProved, Turn: number + 1, Member: 4, Proof: p}})
	}
	s.do(kv.Command{Backup: &kv.BackupOp{Kind: kv.BackupProve, Turn: 3, Member: 5, Proof: kv.BackupProof{At: 1_800_000_001_500}}})
}

// ofALeaseThatEnds is the row of a lease of which one of two keys is deleted, and that of a client's session that has ended.
func ofALeaseThatEnds(t *testing.T) []frozen.Value {
	eng, err := engine.OpenMem(engine.MemOptions{FS: filestest.NewMem(), Dir: "store"})
	must(t, err)
	m := bootstrapped(t, eng, apply.Options{EndBytes: 1})
	s := newScript()
	s.open(of(1))
	s.open(client)
	s.do(kv.Command{LeaseGrant: &kv.LeaseGrantOp{ID: 7, TTLSeconds: 60}})
	s.put("a", "", 7)
	s.put("b", "", 7)
	s.do(kv.Command{LeaseRevoke: &kv.LeaseRevokeOp{ID: 7}})
	s.do(kv.Command{SessionRetire: &kv.SessionRetireOp{Member: uint64(client.Member), Number: client.Number}})
	applyAll(t, m, s.entries)
	values := []frozen.Value{
		{Name: "row of a lease that is ending", Bytes: row(t, eng, "lg\x80\x00\x00\x00\x00\x00\x00\a")},
		{Name: "row of the highest session of a client", Bytes: row(t, eng, "sh\x00\x00\x00\x00\x00\x00\x00\x00")},
	}
	must(t, eng.Close())
	return values
}

// ofALoadedStore are the rows of a store that is filled from a file, before it belongs to a cluster.
func ofALoadedStore(t *testing.T) []frozen.Value {
	eng, err := engine.OpenMem(engine.MemOptions{FS: filestest.NewMem(), Dir: "store"})
	must(t, err)
	l := apply.NewLoader(eng)
	must(t, l.AddLease(7, 60))
	for _, v := range []struct {
		rev       kv.Rev
		tombstone bool
		pair      kv.KeyValue
	}{
		{kv.Rev{Main: 2}, false, kv.KeyValue{Key: []byte("a"), Value: []byte("1"), CreateRevision: 2, ModRevision: 2, Version: 1}},
		{kv.Rev{Main: 300}, false, kv.KeyValue{Key: []byte("a"), Value: []byte("2"), CreateRevision: 2, ModRevision: 300, Version: 2,
			Lease: 7}},
		{kv.Rev{Main: 301}, false, kv.KeyValue{Key: []byte("b"), CreateRevision: 301, ModRevision: 301, Version: 1}},
		{kv.Rev{Main: 301, Sub: 1}, true, kv.KeyValue{Key: []byte("a"), ModRevision: 301}},
	} {
		must(t, l.AddVersion(v.rev, v.tombstone, &v.pair))
	}
	_, err = l.Finish(301, 1)
	must(t, err)
	defer func() { must(t, eng.Close()) }()
	return allRows(t, eng, "loaded row")
}

func row(t *testing.T, eng engine.Engine, key string) []byte {
	t.Helper()
	value, found, err := eng.Get([]byte(key))
	if err != nil || !found {
		t.Fatalf("row %q: %v", key, err)
	}
	return value
}

func allRows(t *testing.T, eng engine.Engine, sort string) (values []frozen.Value) {
	t.Helper()
	it, err := eng.NewIter(nil, nil)
	must(t, err)
	for valid := it.First(); valid; valid = it.Next() {
		values = append(values, frozen.Value{Name: fmt.Sprintf("%s %q", sort, it.Key()), Bytes: bytes.Clone(it.Value())})
	}
	must(t, errors.Join(it.Error(), it.Close()))
	return values
}

// ofFiles are the small files of a data directory, the manifest of a snapshot and the stream of one.
func ofFiles(t *testing.T) (values []frozen.Value) {
	options := datatest.Options()
	fs := options.FS
	must(t, datadir.Create(options, ofStorage(), consensus.Config{}))
	options.Nonce = func() uint64 { return 1 }
	data, err := datadir.Open(options)
	must(t, err)
	must(t, data.WriteSeenPeers([]identity.Seen{{Member: 77, Storage: ofStorage().Storage, Lost: true,
		Life: consensus.Life{Boots: 300, Nonce: 5}}}))
	must(t, data.MarkLost(&datadir.LostError{Reason: identity.Cloned, Text: "another copy runs"}))
	must(t, data.Close())
	must(t, datadir.WriteFounding(options, datadir.Founding{Storage: ofStorage().Storage, Excluded: true,
		Bindings: []identity.Bound{{Member: 2, Storage: ofStorage().Storage}}}))
	must(t, datadir.WriteDropped(options, ofStorage().Epoch, joint().Members))
	must(t, datadir.WriteForced(options, ofStorage().Epoch))
	must(t, datadir.WriteAddresses(options, []datadir.Address{{Member: 2, URLs: []string{"http://a:2"}, Config: aConfigID,
		Instead: []string{"http://b:2"}, Unknown: true}}))
	must(t, datadir.WriteRestored(options, &datadir.Restored{Name: "m1", Self: 1, Cluster: 9, Members: joint().Members[:1],
		From: "backup.db"}))
	must(t, snapshot.Switch(fs, options.Dir, snapshot.Current{Generation: 3, Installed: aPosition}))
	for _, name := range []string{"boots", "stores/CURRENT", "peers", "lost", "founding", "dropped", "forced", "addresses", "restored"} {
		values = append(values, frozen.Value{Name: "file " + name, Bytes: readFile(t, fs, options.Dir+"/"+name)})
	}
	must(t, snapshot.Build(func(dir string) error {
		return errors.Join(fs.MkdirAll(dir, 0o700), writeFile(fs, dir+"/000001.sst", "table"), writeFile(fs, dir+"/MANIFEST", "manifest"))
	}, fs, "snapshot"))
	var stream bytes.Buffer
	must(t, snapshot.Write(&stream, fs, "snapshot"))
	return append(values, frozen.Value{Name: "manifest of a snapshot", Bytes: readFile(t, fs, "snapshot/SNAPSHOT")},
		frozen.Value{Name: "stream of a snapshot", Bytes: stream.Bytes()})
}

// ofTheNativeAPI are the numbers and kinds of the fields of each message of the native API, and the names of its methods.
func ofTheNativeAPI() (values []frozen.Value) {
	for _, file := range []protoreflect.FileDescriptor{quoratepb.File_quoratepb_membership_proto, quoratepb.File_quoratepb_propose_proto,
		quoratepb.File_quoratepb_token_proto, quoratepb.File_quoratepb_upgrade_proto} {
		for i := range file.Messages().Len() {
			values = append(values, ofMessage(file.Messages().Get(i))...)
		}
		for i := range file.Services().Len() {
			service := file.Services().Get(i)
			for j := range service.Methods().Len() {
				m := service.Methods().Get(j)
				values = append(values, frozen.Value{Name: fmt.Sprintf("method %s", m.FullName()), Bytes: fmt.Appendf(nil,
					"%s -> %s, streams: %t, %t", m.Input().FullName(), m.Output().FullName(), m.IsStreamingClient(),
					m.IsStreamingServer())})
			}
		}
	}
	return values
}

func ofMessage(m protoreflect.MessageDescriptor) (values []frozen.Value) {
	for i := range m.Fields().Len() {
		f := m.Fields().Get(i)
		of := f.Kind().String()
		if f.Message() != nil {
			of = string(f.Message().FullName())
		}
		values = append(values, frozen.Value{Name: "field " + string(f.FullName()), Bytes: fmt.Appendf(nil, "%d: %s %s", f.Number(),
			f.Cardinality(), of)})
	}
	for i := range m.Messages().Len() {
		values = append(values, ofMessage(m.Messages().Get(i))...)
	}
	return values
}

func readFile(t *testing.T, fs env.FS, path string) []byte {
	t.Helper()
	file, err := fs.Open(path)
	must(t, err)
	content, err := io.ReadAll(file)
	must(t, errors.Join(err, file.Close()))
	return content
}

func writeFile(fs env.FS, path, content string) error {
	file, err := fs.Create(path)
	if err != nil {
		return err
	}
	_, err = io.Copy(file, strings.NewReader(content))
	return errors.Join(err, file.Close())
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
