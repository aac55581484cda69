package restore

import (
	"crypto/sha256"
	"encoding/binary"

	"github.com/quorate/quorate/internal/backup"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/identity"
	"github.com/quorate/quorate/internal/kv/apply"
	"github.com/quorate/quorate/internal/member/datadir"
)

// Refound makes the store of a machine, which a continuous backup was restored to, that of the new cluster of the request. The
// store has the state of the cluster that wrote it after at, as its chain proves: so the id of the new cluster is a hash of
// that instead of the contents. The machine can take no more entries.
func Refound(m *apply.Machine, at *backup.Head, r *Request) (*datadir.Restored, *Result, error) {
	if err := r.checkBump(); err != nil {
		return nil, nil, err
	}
	origin := sha256.New()
	for _, number := range []uint64{uint64(m.Cluster()), at.Epoch, uint64(at.Index), at.Sum, r.BumpRevision} {
		_, _ = origin.Write(binary.BigEndian.AppendUint64([]byte("continuous backup"), number))
	}
	done, err := m.Refound(r.BumpRevision)
	if err != nil {
		return nil, nil, err
	}
	ids := make([]consensus.MemberID, len(r.Members))
	for i := range r.Members {
		ids[i] = r.Members[i].ID
	}
	result := &Result{Cluster: identity.ClusterID(ids, origin.Sum(nil)), Revision: done.Revision, Compacted: done.Compacted,
		Versions: int(done.Versions), Keys: int(done.Keys), Leases: done.Leases, Users: done.Users, Roles: done.Roles,
		AuthEnabled: done.AuthEnabled, Alarms: done.Alarms, Limits: done.Limits, Audit: done.Audit}
	return &datadir.Restored{Name: r.Name, Self: r.Self, Cluster: result.Cluster, Members: r.Members, From: r.From,
		Level: done.Level}, result, nil
}
