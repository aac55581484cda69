package backup

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/pflag"

	"github.com/quorate/quorate/internal/backup"
	"github.com/quorate/quorate/internal/backup/fetch"
	"github.com/quorate/quorate/internal/backup/seal"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/ctl/command"
	"github.com/quorate/quorate/internal/storage/files"
	"github.com/quorate/quorate/internal/storage/objects"
	"github.com/quorate/quorate/internal/storage/objects/place"
	"github.com/quorate/quorate/internal/storage/objects/retry"
)

// readMemory is what reading a backup holds for the objects that are under way, beside the segments (package replay).
const readMemory = 128 << 20

// readPatience is for a restore, which is of no use without its end.
var readPatience = retry.Policy{Attempts: 8, First: 500 * time.Millisecond, Most: 20 * time.Second}

// source is a continuous backup at a place.
type source struct {
	streams command.Streams
	url     string
	cluster string
	// identities are files; reads decrypts with them, and is nil if there are none.
	identities []string
	reads      backup.Opener

	at      *place.Place
	store   *place.Store
	catalog *backup.Catalog
}

func (c *source) addFlags(flags *pflag.FlagSet) {
	flags.StringVar(&c.url, "from", "", "the place: file:///DIRECTORY or s3://BUCKET/PREFIX?…; see quorate backup check --help")
	c.addIdentity(flags)
	flags.StringVar(&c.cluster, "cluster", "", "the cluster's id, if the place has backups of several")
}

func (c *source) addIdentity(flags *pflag.FlagSet) {
	flags.StringArrayVar(&c.identities, "identity", nil, "file with a secret key of age that opens an encrypted backup; "+
		"may be given several times")
}

// open lists what the place has. The caller closes c.store.
func (c *source) open(ctx context.Context) (err error) {
	if c.url == "" {
		return command.Usagef("say where the backup is: --from URL")
	}
	if c.at, err = place.Parse(c.url); err != nil {
		return command.Usagef("%w", err)
	}
	if c.reads, err = seal.ReadIdentities(files.Disk, c.identities); err != nil {
		return command.Refused(fmt.Errorf("--identity: %w", err))
	}
	var id consensus.ClusterID
	if c.cluster != "" {
		n, err := strconv.ParseUint(c.cluster, 16, 64)
		if err != nil {
			return command.Usagef("--cluster %q: write the id in hexadecimal digits, as `quorate backup list` does", c.cluster)
		}
		id = consensus.ClusterID(n)
	}
	options := place.Options{FS: files.Disk, Getenv: c.streams.Env, Retry: readPatience, Memory: readMemory}
	if c.store, err = place.Open(c.at, options); err != nil {
		return command.Refused(explained(c.at, err))
	}
	if c.catalog, err = c.list(ctx, id); err != nil {
		c.store.Close()
		return c.failed(ctx, err)
	}
	return nil
}

func (c *source) list(ctx context.Context, id consensus.ClusterID) (*backup.Catalog, error) {
	if id == 0 {
		found, err := fetch.Clusters(ctx, c.store)
		switch {
		case err != nil:
			return nil, err
		case len(found) == 0:
			return nil, fmt.Errorf("%s has no backup of a cluster: %w", c.at, objects.ErrNotFound)
		case len(found) > 1:
			return nil, command.Usagef("%s has backups of several clusters: choose one with --cluster: %v", c.at, found)
		}
		id = found[0]
	}
	return fetch.Catalog(ctx, c.store, id)
}

// failed says what is wrong, with the exit status that belongs to it.
func (c *source) failed(ctx context.Context, err error) error {
	var known *command.Failure
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.As(err, &known):
		return err
	case objects.Passing(err):
		return command.Unreachable(explained(c.at, err))
	}
	if errors.Is(err, backup.ErrSealed) {
		err = fmt.Errorf("%w: --identity FILE", err)
	}
	return command.Refused(err)
}

// target is the flag --at.
func target(word string) (backup.Target, error) {
	t, err := backup.ParseTarget(word)
	if err != nil {
		return t, command.Usagef("--at %w", err)
	}
	return t, nil
}
