package datadir

import (
	"fmt"

	"github.com/quorate/quorate/internal/base/plural"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/storage/wal"
)

// part is the log, the boots file or the store, each of which holds an identity.
type part struct {
	name, path string
	identity   consensus.Identity
}

// mixed returns ErrMixed if the identity of other is not that of p. Different epoch numbers are not compared here.
func (p *part) mixed(other *part) error {
	var what string
	switch a, b := &p.identity, &other.identity; {
	case a.Cluster != b.Cluster:
		what = fmt.Sprintf("is of cluster %v, %s %s of cluster %v", a.Cluster, other.name, other.path, b.Cluster)
	case a.Member != b.Member:
		what = fmt.Sprintf("is of member %v, %s %s of member %v", a.Member, other.name, other.path, b.Member)
	case a.Storage != b.Storage:
		what = fmt.Sprintf("is of storage %v, %s %s of storage %v", a.Storage, other.name, other.path, b.Storage)
	case a.Epoch.Number == b.Epoch.Number && a.Epoch != b.Epoch:
		what = fmt.Sprintf("is of epoch %v, %s %s of epoch %v", a.Epoch, other.name, other.path, b.Epoch)
	default:
		return nil
	}
	return fmt.Errorf("datadir: %w: %s %s %s. Nothing was changed: correct --data-dir or --wal-dir, so that all are those "+
		"of one member", ErrMixed, p.name, p.path, what)
}

// checkParts compares boots file and store with the log. The log's epoch counts, because a recovery writes the epoch only to
// the log.
func checkParts(options *Options, boots *bootsRecord, log *wal.Recovered, store part) error {
	ofLog := part{"the log in", options.walDir(), log.Identity}
	for _, p := range []part{{"the boots file", options.bootsFile(), boots.identity}, store} {
		if err := p.mixed(&ofLog); err != nil {
			return err
		}
		if p.identity.Epoch.Number > ofLog.identity.Epoch.Number {
			return fmt.Errorf("datadir: %w: %s %s has seen epoch %v of the cluster, the log in %s only epoch %v", ErrRolledBack,
				p.name, p.path, p.identity.Epoch, options.walDir(), ofLog.identity.Epoch)
		}
	}
	return checkBoots(options, boots.boots, log.Boots)
}

// checkBoots compares the two counters of starts. A start writes the log's counter first and sends nothing before both are
// durable, so the log's counter is equal or one higher.
func checkBoots(options *Options, file, log uint64) error {
	switch {
	case log < file:
		return fmt.Errorf("datadir: %w: the log in %s was opened %s, this directory %s, as %s says",
			ErrRolledBack, options.walDir(), plural.Of(log, "time"), plural.Of(file, "time"), options.bootsFile())
	case log > file+1:
		return fmt.Errorf("datadir: %w: %s counts %s, the log in %s %d",
			ErrRolledBack, options.bootsFile(), plural.Of(file, "start"), options.walDir(), log)
	}
	return nil
}
