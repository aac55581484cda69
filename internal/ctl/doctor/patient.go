package doctor

import (
	"context"

	"github.com/quorate/quorate/internal/ctl/command"
	"github.com/quorate/quorate/internal/doctor"
	"github.com/quorate/quorate/internal/storage/keysource"
)

// Inspector reads the data directory of a stopped member and changes nothing. It refuses that of a running one.
type Inspector func(ctx context.Context, dataDir, walDir string, keys keysource.Source) (doctor.Stopped, error)

// patient is the command line of `quorate doctor`.
type patient struct {
	*command.Connection
	inspect Inspector
	bundle  string
	through bool // one member asks the others
	mutes   string
	offline bool
	keys    keysource.Source // of directories of stopped members
}
