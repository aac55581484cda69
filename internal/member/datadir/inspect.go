package datadir

import (
	"errors"
	"fmt"
	"time"

	"github.com/cockroachdb/errors/oserror"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/fast"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/kv/apply"
	"github.com/quorate/quorate/internal/storage/snapshot"
	"github.com/quorate/quorate/internal/storage/wal"
)

// Contents is the state in the data directory of a stopped member.
type Contents struct {
	// Log is the log that the next start will find. If StoreAhead, a snapshot has put the store ahead of the log on disk: then
	// Log begins after the snapshot and holds no entries.
	Log        wal.Recovered
	StoreAhead bool
	Written    time.Time            // time of the last write of the log
	Applied    consensus.Position   // by the store on disk; later entries are applied after the next start
	Revision   kv.Revision          // at Applied
	Tombstones []consensus.MemberID // removed members, as the store has them
	// Records are the records that the member holds for proposers, besides the entries of its log.
	Records []consensus.Record
	Names   map[consensus.MemberID]string // names that members have published, at Applied
}

// Inspect reads the data of a member that does not run, and changes nothing. Options.OpenEngine may open the store read-only.
func Inspect(options Options) (*Contents, error) {
	if err := refuseForeign(options); err != nil {
		return nil, err
	}
	if err := CheckFormat(options); err != nil {
		return nil, err
	}
	log, written, err := wal.Inspect(options.WAL())
	if err != nil {
		return nil, options.noLog(newerBuild(err))
	}
	if err := checkLog(&options, &log); err != nil {
		return nil, err
	}
	c := &Contents{Log: log, Written: written, Names: map[consensus.MemberID]string{}}
	if err := c.readStore(options); err != nil {
		return nil, err
	}
	if c.Records, err = records(&options, &log); err != nil {
		return nil, err
	}
	if c.StoreAhead { // this member may have answered entries of the log on disk on the fast path
		c.Records = append(c.Records, fast.AnsweredRecords(&log.Base, log.Entries, log.Identity.Member)...)
	}
	return c, nil
}

// refuseForeign returns an error if the directory holds no member's data.
func refuseForeign(options Options) error {
	exists, err := Exists(options)
	if err != nil {
		return err
	}
	if !exists {
		return fmt.Errorf("%s holds no member's data: give the --data-dir that the member was started with", options.Dir)
	}
	return nil
}

// readStore reads the state that the log does not have. A store that a snapshot has put ahead of the log replaces the log, as
// in Open.
func (c *Contents) readStore(options Options) (err error) {
	current, err := snapshot.Load(options.FS, options.Dir)
	if err != nil {
		return newerBuild(err)
	}
	dir := options.storeDir(current.Generation)
	if _, err := options.FS.Stat(dir); oserror.IsNotExist(err) {
		return fmt.Errorf("datadir: %w: %s is missing", ErrDamaged, dir)
	}
	store, err := options.OpenEngine(dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	machine, err := apply.Open(store, options.Apply)
	if err != nil {
		return fmt.Errorf("datadir: read %s: %w", dir, err)
	}
	c.Applied, c.Revision = machine.Applied(), machine.Store().Revision()
	for _, tombstone := range machine.Tombstones() {
		c.Tombstones = append(c.Tombstones, tombstone.Member)
	}
	boots, err := readBoots(&options)
	if err == nil {
		err = checkParts(&options, &boots, &c.Log, part{"the store in", dir, machine.Owner()})
	}
	switch {
	case err != nil:
		return err
	case c.Log.Holds(c.Applied):
	case c.Applied.Index >= c.Log.Base.Position.Index && current.Installed == c.Applied:
		c.Log.Base, c.Log.Entries, c.StoreAhead = machine.SnapshotMeta(), nil, true
	default:
		return fmt.Errorf("datadir: the store in %s has applied %v but the log does not hold that entry: the two do not "+
			"belong together: correct --data-dir or --wal-dir. Keep both: they may hold acknowledged writes that other "+
			"survivors lack; recover another survivor only if no log that fits is found", options.Dir, c.Applied)
	}
	config, _ := machine.Config()
	for i := range config.Members {
		id := config.Members[i].ID
		if published, known := machine.Published(id); known {
			c.Names[id] = published.Name
		}
	}
	return nil
}
