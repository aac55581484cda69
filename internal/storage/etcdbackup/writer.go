package etcdbackup

import (
	"cmp"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"strconv"

	"go.etcd.io/bbolt"
	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/quorate/quorate/internal/auth"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv"
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
//	auth, authUsers, authRoles: users and roles
var buckets = []string{
	"key", "meta", "lease", "alarm", "members", "members_removed", "cluster", "auth", "authUsers", "authRoles",
}

// The bounds of one transaction of the file, by default. A row takes a few hundred bytes beside its own.
const (
	maxTxBytes  = 16 << 20
	rowOverhead = 512
)

// maxMapBytes is how much of the address space a map takes before the file needs it.
const maxMapBytes = 1 << 40

// Options of Create. The zero value of a number means its default.
type Options struct {
	TxBytes     int                     // rows that are in memory at once; each of them is there twice while they are written
	ExpectBytes int64                   // how long the file may become: beyond that its map is made anew, and rows are copied
	Written     func(bytes int64) error // is told, between two transactions, how long the file is; an error ends the writer
}

// Writer fills a database file.
type Writer struct {
	ctx     context.Context
	options Options
	db      *bbolt.DB
	tx      *bbolt.Tx
	bytes   int // of tx
	pair    mvccpb.KeyValue
}

// Create opens the file, which is empty or not there yet. Between two transactions the writer looks whether ctx has ended.
func Create(ctx context.Context, name string, options Options) (*Writer, error) {
	options.TxBytes = cmp.Or(options.TxBytes, maxTxBytes)
	// The map only takes addresses as far as the file is shorter.
	mapped := int(min(options.ExpectBytes, maxMapBytes))
	db, err := bbolt.Open(name, 0o600, &bbolt.Options{NoSync: true, NoFreelistSync: false, InitialMmapSize: mapped})
	if err != nil {
		return nil, err
	}
	w := &Writer{ctx: ctx, options: options, db: db}
	if err := w.createBuckets(); err != nil {
		_ = w.Close() // nothing to save
		return nil, err
	}
	return w, nil
}

func (w *Writer) createBuckets() (err error) {
	if w.tx, err = w.db.Begin(true); err != nil {
		return err
	}
	for _, name := range buckets {
		if _, err := w.tx.CreateBucketIfNotExists([]byte(name)); err != nil {
			return err
		}
	}
	return nil
}

// Finish makes what was written durable.
func (w *Writer) Finish() error {
	err := w.tx.Commit()
	w.tx = nil
	if err == nil {
		err = w.db.Sync()
	}
	return err
}

// Close closes the file. Without Finish before it the file is of no use.
func (w *Writer) Close() error {
	if w.tx != nil {
		_ = w.tx.Rollback() // nothing to save: the file is thrown away
	}
	return w.db.Close()
}

// put writes a row, in a new transaction if the current one is large.
func (w *Writer) put(bucket string, key, value []byte) error {
	if w.bytes >= w.options.TxBytes {
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
		if w.options.Written != nil {
			if err := w.options.Written(w.tx.Size()); err != nil {
				return err
			}
		}
		w.bytes = 0
	}
	w.bytes += len(key) + len(value) + rowOverhead
	return w.tx.Bucket([]byte(bucket)).Put(key, value)
}

// appendRevision writes the key of one version.
func appendRevision(dst []byte, rev kv.Rev, tombstone bool) []byte {
	dst = binary.BigEndian.AppendUint64(dst, uint64(rev.Main))
	dst = append(dst, '_')
	dst = binary.BigEndian.AppendUint64(dst, uint64(rev.Sub))
	if tombstone {
		dst = append(dst, 't')
	}
	return dst
}

// encode gives the value of one version.
func (w *Writer) encode(p *kv.KeyValue) ([]byte, error) {
	w.pair.Key, w.pair.Value = p.Key, p.Value
	w.pair.CreateRevision, w.pair.ModRevision = int64(p.CreateRevision), int64(p.ModRevision)
	w.pair.Version, w.pair.Lease = int64(p.Version), int64(p.Lease)
	return proto.Marshal(&w.pair)
}

// Version writes a version of which only the revision is known, under the first free sub-revision.
func (w *Writer) Version(p *kv.KeyValue) error {
	rev := kv.Rev{Main: p.ModRevision}
	for {
		key := appendRevision(nil, rev, false)
		if w.tx.Bucket([]byte("key")).Get(key) == nil {
			value, err := w.encode(p)
			if err != nil {
				return err
			}
			return w.put("key", key, value)
		}
		rev.Sub++
	}
}

// Change writes what happened at a revision.
func (w *Writer) Change(revision kv.Revision, events []kv.Event) error {
	for sub := range events {
		event := &events[sub]
		tombstone := event.Kind == kv.EventDelete
		row := event.KV
		if tombstone {
			row = kv.KeyValue{Key: event.KV.Key}
		}
		value, err := w.encode(&row)
		if err != nil {
			return err
		}
		key := appendRevision(nil, kv.Rev{Main: revision, Sub: int64(sub)}, tombstone)
		if err := w.put("key", key, value); err != nil {
			return err
		}
	}
	return nil
}

// Meta is what the file says about the log, and of the database as a whole.
type Meta struct {
	Index            consensus.Index // of the last entry that is in the file
	Term             consensus.Term
	Voters, Learners []consensus.MemberID
	Compacted        kv.Revision // zero: never
	Storage, Cluster string      // versions, as "3.7.0"
}

// Meta writes it. Authentication is written as never enabled.
func (w *Writer) Meta(m *Meta) error {
	state, err := json.Marshal(struct {
		Voters    []consensus.MemberID `json:"voters,omitempty"`
		Learners  []consensus.MemberID `json:"learners,omitempty"`
		AutoLeave bool                 `json:"auto_leave"`
	}{m.Voters, m.Learners, false})
	if err != nil {
		return err
	}
	type row struct {
		bucket, key string
		value       []byte
	}
	rows := []row{
		{"meta", "consistent_index", binary.BigEndian.AppendUint64(nil, uint64(m.Index))},
		{"meta", "term", binary.BigEndian.AppendUint64(nil, uint64(m.Term))},
		{"meta", "confState", state},
		{"meta", "storageVersion", []byte(m.Storage)},
		{"cluster", "clusterVersion", []byte(m.Cluster)},
		{"cluster", "downgrade", []byte(`{"target-version":"","enabled":false}`)},
	}
	if m.Compacted > 0 {
		at := appendRevision(nil, kv.Rev{Main: m.Compacted}, false)
		rows = append(rows, row{"meta", "scheduledCompactRev", at}, row{"meta", "finishedCompactRev", at})
	}
	for _, r := range rows {
		if err := w.put(r.bucket, []byte(r.key), r.value); err != nil {
			return err
		}
	}
	return nil
}

// Lease writes the TTL that was granted. The time that is left is not in the file.
func (w *Writer) Lease(id kv.LeaseID, ttlSeconds int64) error {
	row := protowire.AppendTag(nil, 1, protowire.VarintType)
	row = protowire.AppendVarint(row, uint64(id))
	row = protowire.AppendTag(row, 2, protowire.VarintType)
	row = protowire.AppendVarint(row, uint64(ttlSeconds))
	return w.put("lease", binary.BigEndian.AppendUint64(nil, uint64(id)), row)
}

// Alarm writes an alarm that is raised.
func (w *Writer) Alarm(alarm kv.Alarm) error {
	key, err := proto.Marshal(&etcdserverpb.AlarmMember{
		MemberID: alarm.Member, Alarm: etcdserverpb.AlarmType(alarm.Kind),
	})
	if err != nil {
		return err
	}
	return w.put("alarm", key, nil)
}

// Users writes users and roles, and whether authentication is enabled.
func (w *Writer) Users(state *auth.State) error {
	enabled := []byte{0}
	if state.Enabled() {
		enabled[0] = 1
	}
	err := errors.Join(w.put("auth", []byte("authEnabled"), enabled),
		w.put("auth", []byte("authRevision"), binary.BigEndian.AppendUint64(nil, state.Revision())))
	for _, name := range state.Users() {
		if user, ok := state.User(name); ok && err == nil {
			err = w.message("authUsers", name, user.Message())
		}
	}
	for _, name := range state.Roles() {
		if role, ok := state.Role(name); ok && err == nil {
			err = w.message("authRoles", name, role.Message())
		}
	}
	return err
}

func (w *Writer) message(bucket, key string, m proto.Message) error {
	value, err := proto.Marshal(m)
	if err != nil {
		return err
	}
	return w.put(bucket, []byte(key), value)
}

// Member is a member of the cluster, as etcd stores it.
type Member struct {
	ID         uint64   `json:"id"`
	PeerURLs   []string `json:"peerURLs"`
	IsLearner  bool     `json:"isLearner,omitempty"`
	Name       string   `json:"name,omitempty"`
	ClientURLs []string `json:"clientURLs,omitempty"`
}

// Member writes a member.
func (w *Writer) Member(m *Member) error {
	row, err := json.Marshal(m)
	if err != nil {
		return err
	}
	return w.put("members", hexID(m.ID), row)
}

// Removed writes the id of a member that was removed, which no member may have again.
func (w *Writer) Removed(id uint64) error {
	return w.put("members_removed", hexID(id), []byte("removed"))
}

func hexID(id uint64) []byte { return strconv.AppendUint(nil, id, 16) }
