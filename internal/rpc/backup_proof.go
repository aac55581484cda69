package rpc

import (
	"context"
	"errors"
	"fmt"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/base/printable"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/storage/objects/place"
)

// Report takes what root found who tried to prove the backup. The state machine notes the user, and refuses it if the policy
// was changed meanwhile.
func (b *backupService) Report(ctx context.Context, r *quoratepb.ReportBackupRequest) (*quoratepb.BackupStatus, error) {
	if err := b.readIndex(ctx); err != nil {
		return nil, err
	}
	row := b.row()
	proof, err := b.claimOf(row, r)
	if err != nil {
		return nil, err
	}
	_, err = b.propose(ctx, &kv.Command{Backup: &kv.BackupOp{Kind: kv.BackupClaim, Generation: row.Generation, Proof: proof}})
	if errors.Is(err, kv.ErrBadCommand) {
		err = status.Error(codes.Aborted, "the backup was started, changed or stopped meanwhile: nothing was noted; look at "+
			"`quorate backup status`, and verify again")
	}
	if err != nil {
		return nil, err
	}
	return b.Status(ctx, nil)
}

// claimOf is the proof that a request claims.
func (b *backupService) claimOf(row *kv.BackupRow, r *quoratepb.ReportBackupRequest) (proof kv.BackupProof, err error) {
	refuse := func(code codes.Code, text string) (kv.BackupProof, error) { return proof, status.Error(code, text) }
	if _, err := place.Parse(r.GetPlace()); err != nil {
		return refuse(codes.InvalidArgument, err.Error())
	}
	own := b.options.Member.Cluster()
	machine, release := b.options.Member.Machine()
	applied, revision := machine.Applied().Index, machine.Store().Revision()
	mark, kept := machine.ChainAt(consensus.Index(r.GetIndex()))
	release()
	switch {
	case row.Generation == 0:
		return refuse(codes.FailedPrecondition, "the cluster has no continuous backup: nothing was noted")
	case !place.SameURL(r.GetPlace(), row.Policy.Place):
		return refuse(codes.FailedPrecondition, "the cluster's backup goes to "+row.Policy.Place+", and another place was "+
			"verified: nothing was noted")
	case r.GetCluster() == 0:
		return refuse(codes.InvalidArgument, "say which cluster's backup was verified")
	case r.GetCluster() != uint64(own):
		return refuse(codes.FailedPrecondition, fmt.Sprintf("the backup of cluster %x was verified, and this is cluster %v: "+
			"nothing was noted; give --cluster %[2]v", r.GetCluster(), own))
	case r.GetProven() == (r.GetWhy() != "") && r.GetDamaged() == 0:
		return refuse(codes.InvalidArgument, "say that a state was proven, or why none was")
	case r.GetProven() && (r.GetIndex() == 0 || consensus.Index(r.GetIndex()) > applied ||
		kv.Revision(r.GetRevision()) > revision):
		return refuse(codes.FailedPrecondition, "the state that was proven is none that this cluster had: nothing was noted")
	case r.GetProven() && kept && mark.Index == consensus.Index(r.GetIndex()) && mark.Sum != r.GetSum():
		return refuse(codes.FailedPrecondition, fmt.Sprintf("the place has another history of this cluster: entry %d has the "+
			"sum %016x there, and %016x here; nothing was noted", r.GetIndex(), r.GetSum(), mark.Sum))
	case r.GetTookMs() < 0 || r.GetStateMs() < 0 || r.GetRevision() < 0:
		return refuse(codes.InvalidArgument, "no number is negative")
	}
	return kv.BackupProof{At: b.options.Clock.Now().UnixMilli(), Took: r.GetTookMs(), Proven: r.GetProven(),
		Failed: !r.GetProven(), Point: kv.BackupPoint{Index: r.GetIndex(), Revision: kv.Revision(r.GetRevision()),
			Time: r.GetStateMs()},
		Entries: r.GetEntries(), Damaged: r.GetDamaged(), Why: printable.Within(r.GetWhy(), kv.MaxBackupProofBytes)}, nil
}

// provenOf is a proof; nil: there was none.
func (b *backupService) provenOf(p *kv.BackupProof) *quoratepb.BackupProven {
	if p.At == 0 {
		return nil
	}
	answer := &quoratepb.BackupProven{Revision: int64(p.Point.Revision), Index: p.Point.Index, StateMs: p.Point.Time,
		TimeMs: p.At, TookMs: p.Took, Proven: p.Proven, Failed: p.Failed, Why: p.Why, Member: p.Member, By: p.By,
		Bases:   p.Bases,
		Entries: p.Entries, Damaged: p.Damaged}
	if p.Member != 0 {
		answer.MemberName = b.nameOf(consensus.MemberID(p.Member))
	}
	return answer
}
