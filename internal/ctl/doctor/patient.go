package doctor

import (
	"github.com/quorate/quorate/internal/ctl/command"
	"github.com/quorate/quorate/internal/doctor"
)

// Inspector reads the data directory of a stopped member and changes nothing. It refuses that of a running one.
type Inspector func(dataDir, walDir string) (doctor.Stopped, error)

// patient is the command line of `quorate doctor`.
type patient struct {
	*command.Connection
	inspect Inspector
	bundle  string
	through bool // one member asks the others
	mutes   string
	offline bool
}
