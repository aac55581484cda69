package alarms

import (
	"context"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/console/observed"
	"github.com/quorate/quorate/internal/console/page"
	"github.com/quorate/quorate/internal/console/prose"
	"github.com/quorate/quorate/internal/ctl/backup"
)

// backupHelp is how to make a backup, and how large it becomes.
type backupHelp struct {
	// Continuous says how the continuous backup is; empty: no majority answers.
	Continuous [][]prose.Piece

	Size     string // of the largest store; empty: not known
	Revision string
	Low      []string // members that refuse one, because their disks are nearly full
	Commands []command
}

// command is a command line with its purpose.
type command struct{ For, Line string }

// backups says how the continuous backup is, and how to save a file. The cluster keeps no record of files.
func backups(ctx context.Context, r *page.Request) (any, error) {
	c := backupHelp{Commands: []command{
		{"save what this member holds", r.Command("snapshot", "save", "backup-"+r.Now.UTC().Format("20060102-1504")+".db")},
		{"read the whole file, and refuse one that is cut or damaged", "quorate snapshot status FILE"},
		{"try a restore, into a directory of its own", "quorate snapshot restore FILE --data-dir DIR"},
	}}
	bounded, cancel := context.WithTimeout(ctx, statusPatience)
	defer cancel()
	if status, err := quoratepb.NewBackupClient(r.Conn).Status(bounded, &quoratepb.BackupStatusRequest{}); err == nil {
		for _, sentence := range backup.Sentences(status) {
			c.Continuous = append(c.Continuous, prose.Of(prose.Capital(sentence)+"."))
		}
	}
	all, err := observed.Ask(ctx, r)
	if err != nil {
		return c, nil // how it is made is known without a cluster
	}
	size, revision := int64(0), int64(0)
	for _, m := range all.Members {
		size, revision = max(size, m.Says.GetStore().GetSizeBytes()), max(revision, m.Says.GetStore().GetRevision())
		if m.Says.GetDisk().GetLow() {
			c.Low = append(c.Low, m.Name)
		}
	}
	if revision > 0 {
		c.Size, c.Revision = page.Bytes(size), page.Count(revision)
	}
	return c, nil
}
