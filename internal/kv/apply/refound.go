package apply

import (
	"errors"
	"fmt"

	"go.etcd.io/etcd/api/v3/authpb"

	"github.com/quorate/quorate/internal/auth"
	"github.com/quorate/quorate/internal/base/level"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/kv/mvcc"
)

// Tables of a store that is refounded, by the second byte of their rows; TestRefound_tables finds one that is in neither list.
var (
	// ofCluster belong to the cluster that wrote the store, and are deleted: members, what they publish and do for each other,
	// the place in its log, and the place of its backup, which the new cluster must not write to.
	ofCluster = []byte{rowIdentity[1], rowApplied[1], rowChain[1], rowConfig[1], rowRise[1], rowBackup[1], rowNextSlot[1],
		rowTombstone, rowPublished, rowAlarm, rowOpen, rowHighest, rowJob, rowHead}
	// ofContents stay. Users are written anew, without the secret of tokens and without join tokens.
	ofContents = []byte{rowAuth, rowMoment, rowAudit[1], rowLimit, rowLimitUse}
)

// Refounded is what is left of a store.
type Refounded struct {
	Level               level.Level // that its rows need, with which the new cluster begins
	Revision, Compacted kv.Revision // Compacted 0: nothing is
	Versions            int64
	Keys                int64
	Leases              int
	Users, Roles        int
	AuthEnabled         bool
	Limits              int
	Audit               bool // there is a policy of the audit
	Alarms              int  // that were dropped
}

// Refound takes from the machine's store all that belongs to its cluster, so that Found can make it the first state of another
// one: keys with all versions, leases, users, roles, limits, the policy of the audit, authors and moments stay. With a bump the
// revision is raised by so much, and all history is forgotten. The machine can take no more entries. All is durable on return.
func (m *Machine) Refound(bump uint64) (*Refounded, error) {
	done, err := m.refound(bump)
	if err != nil {
		return nil, fmt.Errorf("apply: take a store from its cluster: %w", err)
	}
	return done, nil
}

func (m *Machine) refound(bump uint64) (_ *Refounded, err error) {
	store := m.Store()
	size := store.Size()
	done := &Refounded{Level: m.ActiveLevel(), Revision: store.Revision(), Compacted: max(store.CompactRevision(), 0),
		Versions: size.Versions, Keys: size.Keys, Leases: m.Leases().Len(), Limits: m.Limits().Len(),
		Audit: m.Audit() != nil && len(m.Audit().Policy) > 0, Alarms: len(m.Alarms())}
	users, err := usersAnew(m.Users())
	if err != nil {
		return nil, err
	}
	done.Users, done.Roles, done.AuthEnabled = len(m.Users().Users()), len(m.Users().Roles()), m.Users().Enabled()

	batch := m.engine.NewBatch()
	defer func() { err = errors.Join(err, batch.Close()) }()
	for _, row := range ofCluster {
		batch.DeleteRange([]byte{tableState, row}, []byte{tableState, row + 1})
	}
	batch.DeleteRange([]byte{tablePack}, []byte{tablePack + 1})
	batch.Delete(rowOwner)
	batch.DeleteRange([]byte{tableState, rowAuth}, []byte{tableState, rowAuth + 1})
	for i := range users {
		batch.Set(append([]byte{tableState, rowAuth}, users[i].Key...), users[i].Value)
	}
	if bump > 0 {
		done.Revision += kv.Revision(bump)
		done.Compacted = done.Revision
		batch.DeleteRange([]byte{tableState, rowMoment}, []byte{tableState, rowMoment + 1})
		if err := mvcc.Raise(m.engine, batch, done.Revision); err != nil {
			return nil, err
		}
	}
	if err := batch.Commit(); err != nil {
		return nil, err
	}
	return done, m.engine.Flush()
}

// usersAnew are the rows of users and roles as a cluster begins with them.
func usersAnew(state *auth.State) ([]auth.Row, error) {
	var users []*authpb.User
	var roles []*authpb.Role
	for _, name := range state.Users() {
		u, _ := state.User(name)
		users = append(users, u.Message())
	}
	for _, name := range state.Roles() {
		r, _ := state.Role(name)
		roles = append(roles, r.Message())
	}
	return auth.Imported(state.Enabled(), state.Revision(), users, roles)
}
