package backup

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/quorate/quorate/internal/backup"
	"github.com/quorate/quorate/internal/backup/fetch"
	"github.com/quorate/quorate/internal/base/plural"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/ctl/command"
	"github.com/quorate/quorate/internal/storage/objects"
	"github.com/quorate/quorate/internal/storage/objects/place"
)

// mostClusters bounds the clusters of a place of which the newest state is looked up: each takes a few lists.
const mostClusters = 64

// listedEnd is a state, for programs.
type listedEnd struct {
	Epoch    uint64          `json:"epoch"`
	Entry    consensus.Index `json:"entry"`
	Revision int64           `json:"revision"`
	Time     string          `json:"time"`
}

func endOf(h backup.Head) listedEnd {
	return listedEnd{Epoch: h.Epoch, Entry: h.Index, Revision: int64(h.Revision), Time: backup.Time(h.Time)}
}

// clusterEnd is a cluster that has a backup at a place, for programs.
type clusterEnd struct {
	Cluster string     `json:"cluster"`
	Newest  *listedEnd `json:"newest,omitempty"` // the last state at the place, whether or not it can be restored

	time int64
}

// listedClusters are the clusters of a place, the one that wrote last first.
type listedClusters struct {
	Clusters []clusterEnd `json:"clusters"`
	More     int          `json:"more,omitempty"` // that were not looked up
}

// endsOf looks up what each cluster wrote last.
func endsOf(ctx context.Context, store objects.Store, found []consensus.ClusterID) (*listedClusters, error) {
	shown := found[:min(len(found), mostClusters)]
	l := &listedClusters{More: len(found) - len(shown)}
	for _, id := range shown {
		catalog, err := fetch.Recent(ctx, store, fetch.Window{Cluster: id, Epoch: math.MaxUint64, Most: math.MaxUint64})
		if err != nil {
			return nil, err
		}
		e := clusterEnd{Cluster: id.String()}
		if newest, ok := catalog.Newest(); ok {
			end := endOf(newest)
			e.Newest, e.time = &end, newest.Time
		}
		l.Clusters = append(l.Clusters, e)
	}
	slices.SortStableFunc(l.Clusters, func(a, b clusterEnd) int { return cmp.Compare(b.time, a.time) })
	return l, nil
}

// which is the refusal of a command that needs one cluster of several.
func (l *listedClusters) which(at *place.Place) error {
	var each []string
	for _, e := range l.Clusters {
		has := "nothing to restore"
		if e.Newest != nil {
			has = "to " + e.Newest.Time
		}
		each = append(each, fmt.Sprintf("%s (%s)", e.Cluster, has))
	}
	if l.More > 0 {
		each = append(each, fmt.Sprintf("and %d more", l.More))
	}
	return command.Usagef("%s has backups of several clusters: choose one with --cluster: %s", at, strings.Join(each, ", "))
}

// print prints what each cluster of a place wrote last.
func (l *listedClusters) print(out io.Writer, asJSON bool) error {
	if asJSON {
		return command.PrintJSON(out, l)
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, e := range l.Clusters {
		if n := e.Newest; n != nil {
			fmt.Fprintf(w, "cluster %s\tto entry %d\trevision %d\t%s\n", e.Cluster, n.Entry, n.Revision, n.Time)
		} else {
			fmt.Fprintf(w, "cluster %s\tnothing to restore\n", e.Cluster)
		}
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if l.More > 0 {
		fmt.Fprintf(out, "and %s that were not looked up\n", plural.Of(l.More, "cluster"))
	}
	_, err := fmt.Fprintln(out, "with --cluster ID: its bases and its log")
	return err
}
