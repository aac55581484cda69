package backup

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/quorate/quorate/internal/base/plural"
	"github.com/quorate/quorate/internal/ctl/command"
	"github.com/quorate/quorate/internal/ctl/progress"
	"github.com/quorate/quorate/internal/ctl/snapshot"
	"github.com/quorate/quorate/internal/ctl/wording"
	"github.com/quorate/quorate/internal/undelete"
)

const diffHelp = `Show which keys were added, changed and removed between two states.

With --from the states are of a continuous backup: each is restored into a scratch directory, and proved, so a large cluster
takes time and room for two of them. Without, they are revisions of the cluster that is running, which it must still have:
since the last compaction. With --from and --endpoints the backup must be that of the cluster there, unless --cluster names
another one, such as the one from before a restore.

The first --at is the older state, and the second the newer one; of a backup also latest, times and entry:INDEX.
PREFIX bounds the keys; without it all are compared. The status is 0 whether or not there is a difference.`

// differ is the command `quorate snapshot diff`.
type differ struct {
	*command.Connection
	past   *Past
	at     []string
	prefix string
	values bool
	keys   int
}

// mostShown is how many keys are printed unless --keys says otherwise.
const mostShown = 1000

// NewDiff is the command `quorate snapshot diff`.
func NewDiff(s command.Streams, read Reader) *cobra.Command {
	d := &differ{Connection: command.NewConnection(s), past: NewPast(s, read, "from")}
	d.MostAnswer = command.LargeAnswer
	cmd := d.AddTo(&cobra.Command{
		Use: "diff --at STATE --at STATE [PREFIX]", Long: diffHelp,
		Short: "Show what differs between two states of a backup or of the history",
		Example: "  quorate snapshot diff --at 4711 --at 4800 /app/\n" +
			"  quorate snapshot diff --from s3://backups/prod --at 2026-11-30T12:00:00Z --at latest /app/",
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				d.prefix = args[0]
			}
			switch {
			case len(d.at) != 2:
				return command.Usagef("give two states: --at for the older one, and --at again for the newer one")
			case d.keys < 0:
				return command.Usagef("--keys %d: give how many keys to print", d.keys)
			}
			if d.past.Given() {
				if cmd.Flags().Changed("endpoints") {
					if err := d.Do(cmd.Context(), d.past.Identify); err != nil {
						return err
					}
				}
				return d.ofBackup(cmd.Context())
			}
			return d.ofCluster(cmd.Context())
		},
	})
	flags := cmd.Flags()
	flags.StringArrayVar(&d.at, "at", nil, "a state; twice: the older one first")
	flags.BoolVar(&d.values, "values", false, "print the values, too; -o json has them always")
	flags.IntVar(&d.keys, "keys", mostShown, "how many keys to print; all are counted")
	d.past.AddFlags(flags)
	return cmd
}

func (d *differ) ofBackup(ctx context.Context) error {
	second := *d.past // it lists the place by itself, and has a scratch directory of its own
	if err := errors.Join(d.past.At(d.at[0]), second.At(d.at[1])); err != nil {
		return err
	}
	return d.past.Use(ctx, func(older undelete.Past, of *snapshot.Proof) error {
		return second.Use(ctx, func(now undelete.Past, nowOf *snapshot.Proof) error {
			return d.compare(ctx, older, now, ProofText(of), ProofText(nowOf))
		})
	})
}

func (d *differ) ofCluster(ctx context.Context) error {
	var revisions [2]int64
	for i, text := range d.at {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || n < 1 {
			return command.Usagef("--at %q: of a running cluster, write a revision; times are those of a backup (--from URL)",
				text)
		}
		revisions[i] = n
	}
	return d.Do(ctx, func(ctx context.Context, client *clientv3.Client) error {
		return d.compare(ctx, present{client, revisions[0]}, present{client, revisions[1]},
			fmt.Sprint("revision ", revisions[0]), fmt.Sprint("revision ", revisions[1]))
	})
}

// present is the state of a revision of the running cluster.
type present struct {
	client   *clientv3.Client
	revision int64
}

// Page implements undelete.Past.
func (h present) Page(ctx context.Context, key, end []byte, limit int) ([]undelete.Version, bool, error) {
	opts := []clientv3.OpOption{clientv3.WithRev(h.revision), clientv3.WithLimit(int64(limit))}
	if len(end) > 0 {
		opts = append(opts, clientv3.WithRange(string(end)))
	}
	answer, err := h.client.Get(ctx, string(key), opts...)
	switch known := rpctypes.Error(err); {
	case err == nil:
	case errors.Is(known, rpctypes.ErrFutureRev):
		return nil, false, command.Refused(fmt.Errorf("revision %d is in the future: `quorate status` shows that of the store",
			h.revision))
	case errors.Is(known, rpctypes.ErrCompacted):
		return nil, false, command.Refused(fmt.Errorf("revision %d is compacted: a continuous backup may have it (--from URL)",
			h.revision))
	default:
		return nil, false, err
	}
	versions := make([]undelete.Version, len(answer.Kvs))
	for i, pair := range answer.Kvs {
		versions[i] = undelete.Version{Key: pair.Key, Value: pair.Value, ModRevision: pair.ModRevision, Lease: pair.Lease}
	}
	return versions, answer.More && len(versions) > 0, nil
}

// keysAtOnce is how many keys of a state are read at once.
const keysAtOnce = 500

// walk goes through the keys of a state in order.
type walk struct {
	past     undelete.Past
	key, end []byte
	page     []undelete.Version
	more     bool
}

// next returns the next key; nil: there is none.
func (w *walk) next(ctx context.Context) (v *undelete.Version, err error) {
	if len(w.page) == 0 && w.more {
		if w.page, w.more, err = w.past.Page(ctx, w.key, w.end, keysAtOnce); err != nil {
			return nil, err
		}
		if n := len(w.page); n > 0 {
			w.key = undelete.After(w.page[n-1].Key)
		}
	}
	if len(w.page) == 0 {
		return nil, nil
	}
	v, w.page = &w.page[0], w.page[1:]
	return v, nil
}

// difference is a key that differs, for programs.
type difference struct {
	Change string    `json:"change"` // added, changed or removed
	Key    []byte    `json:"key"`
	Was    *diffSide `json:"was,omitempty"`
	Now    *diffSide `json:"now,omitempty"`
}

type diffSide struct {
	Mod   int64  `json:"mod_revision"`
	Lease string `json:"lease,omitempty"`
	Value []byte `json:"value"`
}

func sideOf(v *undelete.Version) *diffSide {
	if v == nil {
		return nil
	}
	s := &diffSide{Mod: v.ModRevision, Value: v.Value}
	if v.Lease != 0 {
		s.Lease = command.HexID(uint64(v.Lease))
	}
	return s
}

// compare prints what differs.
func (d *differ) compare(ctx context.Context, older, newer undelete.Past, olderIs, newerIs string) error {
	key, end := undelete.Prefix([]byte(d.prefix))
	was, is := &walk{past: older, key: key, end: end, more: true}, &walk{past: newer, key: key, end: end, more: true}
	if !d.JSON() {
		command.Say(d.Streams.Out, fmt.Sprintf("from %s to %s", olderIs, newerIs))
	}
	counts := map[string]int{}
	a, err := was.next(ctx)
	if err != nil {
		return err
	}
	b, err := is.next(ctx)
	for err == nil && (a != nil || b != nil) {
		order := 0
		switch {
		case a == nil:
			order = 1
		case b == nil:
			order = -1
		default:
			order = bytes.Compare(a.Key, b.Key)
		}
		one := difference{}
		switch {
		case order < 0:
			one = difference{"removed", a.Key, sideOf(a), nil}
		case order > 0:
			one = difference{"added", b.Key, nil, sideOf(b)}
		case a.ModRevision != b.ModRevision || a.Lease != b.Lease || !bytes.Equal(a.Value, b.Value):
			one = difference{"changed", a.Key, sideOf(a), sideOf(b)}
		}
		if one.Change != "" {
			if err = d.print(&one, counts[""]); err != nil {
				return err
			}
			counts[""]++
			counts[one.Change]++
		}
		if order <= 0 {
			a, err = was.next(ctx)
		}
		if order >= 0 && err == nil {
			b, err = is.next(ctx)
		}
	}
	switch {
	case err != nil:
		return err
	case d.JSON():
		return nil
	}
	if left := counts[""] - d.keys; left > 0 {
		command.Say(d.Streams.Out, fmt.Sprintf("and %s; see them with --keys or -o json", plural.Of(left, "other key")))
	}
	command.Say(d.Streams.Out, fmt.Sprintf("%d added, %d changed, %d removed", counts["added"], counts["changed"],
		counts["removed"]))
	return nil
}

// print prints a key that differs, which is number n.
func (d *differ) print(one *difference, n int) error {
	if d.JSON() {
		return command.PrintJSON(d.Streams.Out, one)
	}
	if n >= d.keys {
		return nil
	}
	sign := map[string]string{"added": "+", "changed": "~", "removed": "-"}[one.Change]
	sizes := ""
	switch {
	case one.Was == nil:
		sizes = fmt.Sprintf("%s, revision %d", progress.Size(int64(len(one.Now.Value))), one.Now.Mod)
	case one.Now == nil:
		sizes = fmt.Sprintf("%s, revision %d", progress.Size(int64(len(one.Was.Value))), one.Was.Mod)
	default:
		sizes = fmt.Sprintf("%s to %s, revision %d to %d", progress.Size(int64(len(one.Was.Value))),
			progress.Size(int64(len(one.Now.Value))), one.Was.Mod, one.Now.Mod)
	}
	command.Say(d.Streams.Out, fmt.Sprintf("%s %s  (%s)", sign, wording.Key(one.Key), sizes))
	if d.values {
		if one.Was != nil {
			command.Say(d.Streams.Out, "    was "+wording.Key(one.Was.Value))
		}
		if one.Now != nil {
			command.Say(d.Streams.Out, "    now "+wording.Key(one.Now.Value))
		}
	}
	return nil
}
