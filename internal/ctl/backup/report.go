package backup

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/backup/fetch"
	"github.com/quorate/quorate/internal/base/printable"
	"github.com/quorate/quorate/internal/ctl/command"
	"github.com/quorate/quorate/internal/ctl/snapshot"
)

// mostWhy bounds why a verification failed, in bytes, as a report has it.
const mostWhy = 500

// report tells the cluster how a verification ended: what it proved, or what is wrong with the backup. Where it failed for
// another reason nothing is told.
func report(ctx context.Context, c *command.Connection, s *source, took time.Duration, p *snapshot.Proof, failed error) error {
	r := &quoratepb.ReportBackupRequest{Place: s.at.String(), TookMs: took.Milliseconds(),
		Cluster: uint64(s.catalog.Cluster)}
	switch {
	case failed == nil:
		at, err := time.Parse(time.RFC3339Nano, p.Time)
		if err != nil {
			return err
		}
		if r.Sum, err = strconv.ParseUint(p.Sum, 16, 64); err != nil {
			return err
		}
		r.Proven, r.Index, r.Revision, r.StateMs = true, p.Entry, p.Revision, max(0, at.UnixMilli())
		r.Entries, r.Damaged = uint64(p.Entries), uint64(len(p.Damaged))
		if len(p.Damaged) > 0 {
			r.Why = printable.Within(p.Damaged[0], mostWhy)
		}
	case fetch.Verdict(failed, nil):
		r.Damaged, r.Why = 1, printable.Within(failed.Error(), mostWhy)
	default:
		return nil
	}
	if _, err := call(ctx, c, func(ctx context.Context, api quoratepb.BackupClient) (*quoratepb.BackupStatus, error) {
		return api.Report(ctx, r)
	}); err != nil {
		return fmt.Errorf("the cluster did not take the report: %w", err)
	}
	command.Say(c.Streams.Err, "the cluster knows: `quorate backup status` shows it")
	return nil
}
