package rpc

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/backup/keep"
	"github.com/quorate/quorate/internal/backup/ship"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/storage/objects/place"
)

// backupService is the native Backup service: what the continuous backup ships where. The leader appoints the member that
// ships, which reports how far it is; the service sets the policy and tells.
//
// Invariants:
//  1. Only root starts and stops while authentication is enabled: the gate asks, and the state machine again.
//  2. A status is as new as the changes that were acknowledged before the call.
//  3. A policy names a place that the operator of this member allows. The member that ships asks its own operator again.
//  4. No credentials become a part of the policy: place.Parse refuses a URL that has some.
type backupService struct {
	quoratepb.UnsafeBackupServer
	*shared
}

// defaultBackupVerify is how often members prove the backup, in seconds.
const defaultBackupVerify = 24 * 3600

// Status tells policy and progress.
func (b *backupService) Status(ctx context.Context, _ *quoratepb.BackupStatusRequest) (*quoratepb.BackupStatus, error) {
	if err := b.readIndex(ctx); err != nil {
		return nil, err
	}
	row := b.row()
	answer := statusOf(row)
	answer.Verified, answer.Proven = b.provenOf(&row.Proofs.Last), b.provenOf(&row.Proofs.Proven)
	if b.access.Root(ctx) != nil { // names of users are root's to know
		for _, proof := range []*quoratepb.BackupProven{answer.Verified, answer.Proven} {
			if proof.GetBy() != "" {
				proof.By = "another user"
			}
		}
	}
	answer.NowMs = b.options.Clock.Now().UnixMilli()
	if row.Member != 0 {
		answer.MemberName = b.nameOf(consensus.MemberID(row.Member))
	}
	if prover := row.Proofs.Member; prover != 0 {
		answer.Proving, answer.ProvingSinceMs = prover, row.Proofs.Began
		answer.ProvingName = b.nameOf(consensus.MemberID(prover))
	}
	return answer, nil
}

// Start sets the policy.
func (b *backupService) Start(ctx context.Context, r *quoratepb.StartBackupRequest) (*quoratepb.BackupStatus, error) {
	if err := b.readIndex(ctx); err != nil {
		return nil, err
	}
	row := b.row()
	policy, err := policyOf(&row.Policy, r)
	policy.Since = b.options.Clock.Now().UnixMilli()
	if err != nil {
		return nil, status.Error(codes.InvalidArgument, err.Error())
	}
	if refuses := b.options.RefusesPlace; refuses != nil {
		if why := refuses(policy.Place); why != "" {
			return nil, status.Error(codes.FailedPrecondition, why)
		}
	}
	return b.set(ctx, row.Generation, policy)
}

// Stop ends the backup.
func (b *backupService) Stop(ctx context.Context, _ *quoratepb.StopBackupRequest) (*quoratepb.BackupStatus, error) {
	if err := b.readIndex(ctx); err != nil {
		return nil, err
	}
	row := b.row()
	if !row.Policy.On {
		return nil, status.Error(codes.FailedPrecondition, "no backup is on: nothing happened")
	}
	policy := row.Policy
	policy.On, policy.Since = false, b.options.Clock.Now().UnixMilli()
	return b.set(ctx, row.Generation, policy)
}

func (b *backupService) row() *kv.BackupRow {
	machine, release := b.options.Member.Machine()
	defer release()
	return machine.Backup()
}

func (b *backupService) set(ctx context.Context, generation uint64, policy kv.BackupPolicy) (*quoratepb.BackupStatus, error) {
	_, err := b.propose(ctx, &kv.Command{Backup: &kv.BackupOp{Kind: kv.BackupSet, Generation: generation, Policy: policy}})
	if errors.Is(err, kv.ErrBadCommand) {
		err = status.Error(codes.Aborted, "the backup was started, changed or stopped by another caller meanwhile: "+
			"nothing happened, look at `quorate backup status` and try again")
	}
	if err != nil {
		return nil, err
	}
	b.options.Logger.InfoContext(ctx, "the policy of the backup is set", "on", policy.On, "place", policy.Place, "recipients",
		len(recipientsOf(&policy)))
	return b.Status(ctx, nil)
}

// policyOf is the policy that a request asks for, where the cluster has one already.
func policyOf(has *kv.BackupPolicy, r *quoratepb.StartBackupRequest) (p kv.BackupPolicy, err error) {
	p = kv.BackupPolicy{On: true, Place: cmp.Or(r.GetPlace(), has.Place),
		BaseSeconds:   cmp.Or(r.GetBaseSeconds(), has.BaseSeconds, ship.DefaultBaseEvery/1000),
		SealMillis:    cmp.Or(r.GetSealMs(), has.SealMillis, ship.DefaultSealAfter),
		VerifySeconds: has.VerifySeconds}
	switch {
	case r.VerifySeconds != nil:
		p.VerifySeconds = r.GetVerifySeconds()
	case has.Place == "": // there was no policy
		p.VerifySeconds = defaultBackupVerify
	}
	if p.Place == "" {
		return p, errors.New("say where the backup goes: file:///DIRECTORY, or s3://BUCKET/PREFIX")
	}
	if p.Place, err = placeOf(p.Place); err != nil {
		return p, err
	}
	for _, t := range []struct {
		flag            string
		is, least, most int64
		unit, choose    string
	}{
		{"--base-every", p.BaseSeconds, kv.MinBackupBaseSeconds, kv.MaxBackupBaseSeconds, "s", "1m to 720h"},
		{"--seal-after", p.SealMillis, kv.MinBackupSealMillis, kv.MaxBackupSealMillis, "ms", "100ms to 1h"},
		{"--verify-every", cmp.Or(p.VerifySeconds, kv.MinBackupVerifySeconds), kv.MinBackupVerifySeconds,
			kv.MaxBackupVerifySeconds, "s", "1m to 720h, or 0 for none"},
	} {
		if t.is < t.least || t.is > t.most {
			return p, fmt.Errorf("%s %d%s: choose %s", t.flag, t.is, t.unit, t.choose)
		}
	}
	if err := setRecipients(&p, has, r); err != nil {
		return p, err
	}
	if p.Keep, err = keepOf(has, r); err != nil {
		return p, err
	}
	if !p.Valid() {
		return p, errors.New("the URL of the place is not text")
	}
	return p, nil
}

// placeOf returns the URL of a place in one form: another text would count as another place.
func placeOf(text string) (string, error) {
	size := len(text)
	if size <= kv.MaxBackupPlaceBytes {
		at, err := place.Parse(text)
		if err != nil {
			return "", err
		}
		text = at.String()
		size = len(text) // characters that are escaped make it longer
	}
	if size > kv.MaxBackupPlaceBytes {
		return "", fmt.Errorf("the URL of the place has %d bytes, and at most %d are taken", size, kv.MaxBackupPlaceBytes)
	}
	return text, nil
}

func statusOf(row *kv.BackupRow) *quoratepb.BackupStatus {
	p := &row.Progress
	answer := &quoratepb.BackupStatus{Keep: cmp.Or(row.Policy.Keep, keep.All), Retention: retained(&p.Retention),
		Generation: row.Generation, On: row.Policy.On, Place: row.Policy.Place,
		BaseSeconds: row.Policy.BaseSeconds, SealMs: row.Policy.SealMillis,
		SinceMs: row.Policy.Since, VerifySeconds: row.Policy.VerifySeconds, Turn: row.Turn,
		Member: row.Member, ReportedMs: p.At, Restorable: markOf(&p.Restorable), Base: markOf(&p.Base), Gaps: p.Gaps,
		Trouble: p.Trouble, Recipients: recipientsOf(&row.Policy)}
	for i := range row.Known {
		answer.Made = append(answer.Made, &quoratepb.BackupMade{Index: row.Known[i].Index, Sha256: row.Known[i].Hash[:]})
	}
	if p.Gap.Time != 0 {
		answer.Gap = &quoratepb.BackupHole{After: p.Gap.After, Until: p.Gap.Until, TimeMs: p.Gap.Time}
	}
	return answer
}

func markOf(p *kv.BackupPoint) *quoratepb.BackupMark {
	if p.Index == 0 {
		return nil
	}
	return &quoratepb.BackupMark{Index: p.Index, Revision: int64(p.Revision), TimeMs: p.Time}
}
