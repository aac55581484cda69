package alarms

import (
	"context"

	"github.com/quorate/quorate/internal/console/observed"
	"github.com/quorate/quorate/internal/console/page"
)

// backupHelp is how to make a backup, and how large it becomes.
type backupHelp struct {
	Size     string // of the largest store; empty: not known
	Revision string
	Low      []string // members that refuse one, because their disks are nearly full
	Commands []command
}

// command is a command line with its purpose.
type command struct{ For, Line string }

// backups says how to make one. The cluster keeps no record of those that were made.
func backups(ctx context.Context, r *page.Request) (any, error) {
	c := backupHelp{Commands: []command{
		{"save what this member holds", r.Command("snapshot", "save", "backup-"+r.Now.UTC().Format("20060102-1504")+".db")},
		{"read the whole file, and refuse one that is cut or damaged", "quorate snapshot status FILE"},
		{"try a restore, into a directory of its own", "quorate snapshot restore FILE --data-dir DIR"},
	}}
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
