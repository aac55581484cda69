package members

import (
	"context"
	"errors"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/base/printable"
)

// Backup is the policy of the continuous backup; without a place it is off.
type Backup struct {
	Place      string
	Keep       string // empty: all
	Recipients []string
	BaseEvery  time.Duration
	// Applied says that the cluster was given this policy: only whether it is on, and where, is compared.
	Applied bool
}

// mostPlace is how many characters of a URL, and of what is wrong with it, are told.
const mostPlace = 1 << 10

var errNoBackup = errors.New("its build has no continuous backup: that needs release 1.1 or later, and feature level 2")

// BackupState is how far it is.
type BackupState struct {
	On                       bool
	Place, Member, Trouble   string
	RestorableRevision       int64
	ProvenRevision           int64
	Restorable, Base, Proven time.Time
	Gaps                     uint64
}

// Backup lets the cluster have the policy, and tells how far the backup is. The cluster ships it by itself.
func (g *Group) Backup(ctx context.Context, want *Backup) (*BackupState, error) {
	var state *BackupState
	err := g.any(ctx, func(ctx context.Context, conn *grpc.ClientConn) error {
		api := quoratepb.NewBackupClient(conn)
		s, err := api.Status(ctx, &quoratepb.BackupStatusRequest{})
		if status.Code(err) == codes.Unimplemented {
			return errNoBackup
		}
		if err != nil {
			return err
		}
		switch {
		case want.Place == "" && s.GetOn():
			s, err = api.Stop(ctx, &quoratepb.StopBackupRequest{})
		case want.Place != "" && differs(s, want):
			keep := want.Keep
			if keep == "" {
				keep = "all"
			}
			s, err = api.Start(ctx, &quoratepb.StartBackupRequest{Place: want.Place, Keep: keep, Recipients: want.Recipients,
				BaseSeconds: int64(want.BaseEvery.Seconds()), InTheClear: len(want.Recipients) == 0 &&
					len(s.GetRecipients()) > 0})
		}
		if err != nil {
			return err
		}
		state = &BackupState{On: s.GetOn(), Place: printable.Text(s.GetPlace(), mostPlace),
			Member: printable.Text(s.GetMemberName(), mostText), Trouble: printable.Text(s.GetTrouble(), mostPlace),
			Gaps:               s.GetGaps(),
			RestorableRevision: s.GetRestorable().GetRevision(), Restorable: at(s.GetRestorable().GetTimeMs()),
			Base: at(s.GetBase().GetTimeMs()), Proven: at(s.GetProven().GetTimeMs()),
			ProvenRevision: s.GetProven().GetRevision()}
		return nil
	})
	return state, err
}

func at(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms)
}

func differs(s *quoratepb.BackupStatus, want *Backup) bool {
	return !s.GetOn() || s.GetPlace() != want.Place || !want.Applied
}
