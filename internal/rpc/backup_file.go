package rpc

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"go.etcd.io/bbolt"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/protobuf/proto"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/kv/apply"
	"github.com/quorate/quorate/internal/kv/mvcc"
)

// The schema of etcd's database file, versions 3.6 and 3.7. Numbers are big-endian.
//
//	key              revision (8 bytes) '_' sub-revision (8 bytes) ['t' if a tombstone] -> mvccpb.KeyValue
//	meta             consistent_index, term: 8 bytes; confState: JSON; storageVersion: text;
//	                 scheduledCompactRev, finishedCompactRev: a revision as in key
//	lease            id (8 bytes) -> leasepb.Lease: ID=1 TTL=2 RemainingTTL=3
//	alarm            etcdserverpb.AlarmMember -> nothing
//	members          id in hexadecimal -> JSON; members_removed: id -> "removed"
//	cluster          clusterVersion: text; downgrade: JSON
//	auth, authUsers, authRoles: empty but for authEnabled and authRevision
var backupBuckets = []string{
	"key", "meta", "lease", "alarm", "members", "members_removed", "cluster", "auth", "authUsers", "authRoles",
}

const (
	backupRowsPerTx    = 20_000
	backupBytesPerTx   = 16 << 20
	backupPageKeys     = 1000
	backupRevisionSpan = 1000 // revisions of history read at once
)

// backupWriter fills a database file. It commits every so often, so that its memory stays bounded.
type backupWriter struct {
	ctx     context.Context
	db      *bbolt.DB
	tx      *bbolt.Tx
	rows    int
	bytes   int
	version Version
}

// writeBackup writes the state of a machine, which nobody changes, to a database file.
func writeBackup(ctx context.Context, name string, machine *apply.Machine, version Version) (err error) {
	db, err := bbolt.Open(name, 0o600, &bbolt.Options{NoSync: true, NoFreelistSync: false})
	if err != nil {
		return fmt.Errorf("%w: %w", errBackup, err)
	}
	w := &backupWriter{ctx: ctx, db: db, version: version}
	defer func() {
		if w.tx != nil {
			_ = w.tx.Rollback() // nothing to save: the file is thrown away
		}
		if closed := db.Close(); err == nil && closed != nil {
			err = fmt.Errorf("%w: %w", errBackup, closed)
		}
	}()
	for _, step := range []func(*apply.Machine) error{
		w.begin, w.oldVersions, w.history, w.meta, w.leases, w.alarms, w.members, w.finish,
	} {
		if err := step(machine); err != nil {
			return fmt.Errorf("%w: %w", errBackup, err)
		}
	}
	return nil
}

func (w *backupWriter) begin(*apply.Machine) (err error) {
	if w.tx, err = w.db.Begin(true); err != nil {
		return err
	}
	for _, name := range backupBuckets {
		if _, err := w.tx.CreateBucketIfNotExists([]byte(name)); err != nil {
			return err
		}
	}
	return nil
}

func (w *backupWriter) finish(*apply.Machine) error {
	err := w.tx.Commit()
	w.tx = nil
	if err == nil {
		err = w.db.Sync()
	}
	return err
}

// put writes a row, in a new transaction if the current one is large.
func (w *backupWriter) put(bucket string, key, value []byte) error {
	if w.rows >= backupRowsPerTx || w.bytes >= backupBytesPerTx {
		if err := w.ctx.Err(); err != nil {
			return err
		}
		err := w.tx.Commit()
		w.tx = nil
		if err != nil {
			return err
		}
		if w.tx, err = w.db.Begin(true); err != nil {
			return err
		}
		w.rows, w.bytes = 0, 0
	}
	w.rows++
	w.bytes += len(key) + len(value)
	return w.tx.Bucket([]byte(bucket)).Put(key, value)
}

// appendBackupRevision writes the key of one version.
func appendBackupRevision(dst []byte, rev kv.Rev, tombstone bool) []byte {
	dst = binary.BigEndian.AppendUint64(dst, uint64(rev.Main))
	dst = append(dst, '_')
	dst = binary.BigEndian.AppendUint64(dst, uint64(rev.Sub))
	if tombstone {
		dst = append(dst, 't')
	}
	return dst
}

// oldVersions writes what a read at the compact revision shows and later history does not tell: the versions from
// before it. Their sub-revisions are no longer known and of no meaning, but must differ.
func (w *backupWriter) oldVersions(machine *apply.Machine) error {
	store := machine.Store()
	compact := store.CompactRevision()
	if compact <= 0 {
		return nil
	}
	op := kv.RangeOp{Key: []byte{0}, End: []byte{0}, Revision: compact, Limit: backupPageKeys}
	for {
		page, _, err := store.RangeUncounted(&op, nil)
		if err != nil {
			return err
		}
		for i := range page.KVs {
			if page.KVs[i].ModRevision >= compact {
				continue
			}
			if err := w.row(&page.KVs[i]); err != nil {
				return err
			}
		}
		if !page.More {
			return nil
		}
		op.Key = append(append([]byte(nil), page.KVs[len(page.KVs)-1].Key...), 0)
	}
}

// row writes a version under the first free sub-revision.
func (w *backupWriter) row(p *kv.KeyValue) error {
	rev := kv.Rev{Main: p.ModRevision}
	for {
		key := appendBackupRevision(nil, rev, false)
		if w.tx.Bucket([]byte("key")).Get(key) == nil {
			return w.put("key", key, appendKeyValue(nil, p))
		}
		rev.Sub++
	}
}

// history writes every change from the compact revision on.
func (w *backupWriter) history(machine *apply.Machine) error {
	store := machine.Store()
	next, last := max(store.CompactRevision(), 1), store.Revision()
	for next <= last {
		changes, after, err := store.EventsSince(mvcc.EventQuery{
			From: next, To: last, MaxRevisions: backupRevisionSpan, MaxBytes: backupBytesPerTx,
		})
		if err != nil {
			return err
		}
		for i := range changes {
			if err := w.change(changes[i].Revision, changes[i].Events); err != nil {
				return err
			}
		}
		next = after
	}
	return nil
}

func (w *backupWriter) change(revision kv.Revision, events []kv.Event) error {
	for sub := range events {
		event := &events[sub]
		tombstone := event.Kind == kv.EventDelete
		row := event.KV
		if tombstone {
			row = kv.KeyValue{Key: event.KV.Key}
		}
		key := appendBackupRevision(nil, kv.Rev{Main: revision, Sub: int64(sub)}, tombstone)
		if err := w.put("key", key, appendKeyValue(nil, &row)); err != nil {
			return err
		}
	}
	return nil
}

func (w *backupWriter) meta(machine *apply.Machine) error {
	applied := machine.Applied()
	config, _ := machine.Config()
	state, err := json.Marshal(struct {
		Voters    []consensus.MemberID `json:"voters,omitempty"`
		Learners  []consensus.MemberID `json:"learners,omitempty"`
		AutoLeave bool                 `json:"auto_leave"`
	}{config.Voters, config.Learners, false})
	if err != nil {
		return err
	}
	rows := map[string][]byte{
		"consistent_index": binary.BigEndian.AppendUint64(nil, uint64(applied.Index)),
		"term":             binary.BigEndian.AppendUint64(nil, uint64(applied.Term)),
		"confState":        state,
		"storageVersion":   []byte(w.version.Storage),
	}
	if compact := machine.Store().CompactRevision(); compact > 0 {
		rows["scheduledCompactRev"] = appendBackupRevision(nil, kv.Rev{Main: compact}, false)
		rows["finishedCompactRev"] = rows["scheduledCompactRev"]
	}
	for key, value := range rows {
		if err := w.put("meta", []byte(key), value); err != nil {
			return err
		}
	}
	if err := w.put("auth", []byte("authEnabled"), []byte{0}); err != nil {
		return err
	}
	return w.put("auth", []byte("authRevision"), binary.BigEndian.AppendUint64(nil, 1))
}

func (w *backupWriter) leases(machine *apply.Machine) error {
	// The time does not matter: only what was granted is written, not what is left of it.
	for _, info := range machine.Leases().Leases(time.Time{}) {
		row := appendUint(nil, 1, uint64(info.ID))
		row = appendUint(row, 2, uint64(info.TTLSeconds))
		if err := w.put("lease", binary.BigEndian.AppendUint64(nil, uint64(info.ID)), row); err != nil {
			return err
		}
	}
	return nil
}

func (w *backupWriter) alarms(machine *apply.Machine) error {
	for _, alarm := range machine.Alarms() {
		key, err := proto.Marshal(&pb.AlarmMember{MemberID: alarm.Member, Alarm: pb.AlarmType(alarm.Kind)})
		if err != nil {
			return err
		}
		if err := w.put("alarm", key, nil); err != nil {
			return err
		}
	}
	return nil
}

func (w *backupWriter) members(machine *apply.Machine) error {
	config, _ := machine.Config()
	for i := range config.Members {
		m := &config.Members[i]
		published, _ := machine.Published(m.ID)
		row, err := json.Marshal(struct {
			ID         uint64   `json:"id"`
			PeerURLs   []string `json:"peerURLs"`
			IsLearner  bool     `json:"isLearner,omitempty"`
			Name       string   `json:"name,omitempty"`
			ClientURLs []string `json:"clientURLs,omitempty"`
		}{uint64(m.ID), m.PeerURLs, config.IsLearner(m.ID), published.Name, published.ClientURLs})
		if err != nil {
			return err
		}
		if err := w.put("members", hexID(m.ID), row); err != nil {
			return err
		}
	}
	for _, tomb := range machine.Tombstones() {
		if err := w.put("members_removed", hexID(tomb.Member), []byte("removed")); err != nil {
			return err
		}
	}
	if err := w.put("cluster", []byte("clusterVersion"), []byte(w.version.Cluster)); err != nil {
		return err
	}
	return w.put("cluster", []byte("downgrade"), []byte(`{"target-version":"","enabled":false}`))
}

func hexID(id consensus.MemberID) []byte { return strconv.AppendUint(nil, uint64(id), 16) }
