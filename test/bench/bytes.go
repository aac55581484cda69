package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/quorate/quorate/test/bench/cluster"
	"github.com/quorate/quorate/test/bench/figures"
	"github.com/quorate/quorate/test/bench/k8s"
	"github.com/quorate/quorate/test/bench/latency"
	"github.com/quorate/quorate/test/bench/load"
)

const (
	bytesIdle   = 5 * time.Second
	bytesSettle = 4 * time.Second // members measure how far they are from each other, and learn who proposes
	bytesWarm   = 100             // puts that do not count
	bytesDrain  = time.Second     // after the last put, for what it makes the members tell each other
)

// siteBytes is puts from some of five sites.
type siteBytes struct {
	size, puts int
	rate       float64
	from       []int // sites that write
	matrix     bool
}

// siteBytesOf measures what goes over the links between five sites for a put.
func siteBytesOf(f *flags) func() ([]trial, error) {
	sizes := take(f, "sizes", "256,10240",
		"bytes of a value: random ones up to 1,024, above that fields as protobuf encodes a pod of Kubernetes",
		listOf(within(strconv.Atoi, k8s.LeastValue, 1<<20)))
	rate := f.decimal("rate", "50", "puts a second, of all sites together", 0.01, 1e6)
	puts := f.number("puts", "500", "puts that count", 1, math.MaxInt)
	from := f.choices("from", strings.Join(sites, ","), "sites that write, with commas between", sites)
	matrix := f.yes("links", "print what each link carried for a put, too")
	return func() (all []trial, err error) {
		for _, size := range *sizes {
			p := &siteBytes{size: size, puts: *puts, rate: *rate, matrix: *matrix}
			for _, name := range *from {
				p.from = append(p.from, slices.Index(sites, name))
			}
			all = append(all, trial{name: fmt.Sprintf("bytes of values of %d", size), on: betweenSites(), do: p.measure})
		}
		return all, nil
	}
}

func (p *siteBytes) measure(ctx context.Context, b *bed) ([]figures.Row, error) {
	if err := leadFrom(ctx, b.Cluster, leadingSite); err != nil {
		return nil, err
	}
	cluster.Pause(ctx, bytesSettle)
	var clients []*clientv3.Client
	defer func() {
		for _, c := range clients {
			_ = c.Close() // everything was answered
		}
	}()
	for _, i := range p.from {
		c, err := cluster.Connect(b.Members[i].ClientAddr)
		if err != nil {
			return nil, err
		}
		clients = append(clients, c)
	}
	value := valuesOf(p.size)
	if _, err := p.put(ctx, clients, bytesWarm, value); err != nil {
		return nil, err
	}
	cluster.Pause(ctx, bytesDrain)
	before := b.Links.Carried()
	cluster.Pause(ctx, bytesIdle)
	idle := float64(b.Links.Carried().Since(before).Sum()) / bytesIdle.Seconds()
	before = b.Links.Carried()
	begun := time.Now()
	times, err := p.put(ctx, clients, p.puts, value)
	took := time.Since(begun)
	if err != nil {
		return nil, err
	}
	cluster.Pause(ctx, bytesDrain)
	links := b.Links.Carried().Since(before)
	each := float64(links.Sum()) / float64(p.puts)
	f := figures.NewRow(fmt.Sprintf("put %d B", p.size))
	f.Latencies(times.Count(), times.Quantile, times.Longest(), took)
	f.Set(figures.LinkBytes, each)
	f.Set(figures.LinkBytesBeside, each-idle*(took+bytesDrain).Seconds()/float64(p.puts))
	f.Set(figures.BusiestLinkBytes, float64(slices.Max(slices.Concat(links...)))/float64(p.puts))
	f.Set(figures.IdleBytes, idle)
	if p.matrix {
		p.printLinks(b.Server, links)
	}
	return []figures.Row{f}, nil
}

// put begins puts at the rate, in turn from each site, and returns their times.
func (p *siteBytes) put(
	ctx context.Context, clients []*clientv3.Client, n int, value func(number int) string,
) (times latency.Histogram, err error) {
	var mu sync.Mutex
	load.Steadily(ctx, time.Duration(float64(time.Second)/p.rate), func(i int) func() {
		if i == n {
			return nil
		}
		text := value(i)
		return func() {
			limited, cancel := context.WithTimeout(ctx, load.OperationTimeout)
			defer cancel()
			begun := time.Now()
			_, failed := clients[i%len(clients)].Put(limited, k8sPodKey(i), text)
			mu.Lock()
			defer mu.Unlock()
			times.Record(time.Since(begun))
			err = errors.Join(err, failed)
		}
	})
	return times, errors.Join(err, ctx.Err())
}

func k8sPodKey(i int) string {
	return fmt.Sprintf("/registry/pods/ns-%02d/web-%08x", i%50, uint32(i)*2654435761)
}

// valuesOf returns a function that makes values: of so few bytes random ones, else as the objects of Kubernetes.
func valuesOf(size int) func(number int) string {
	if size > 1<<10 {
		next := k8s.Values(false)
		return func(number int) string { return string(next(number, size)) }
	}
	source := rand.NewChaCha8([32]byte{3})
	return func(int) string {
		value := make([]byte, size)
		_, _ = source.Read(value) // never fails
		return string(value)
	}
}

func (p *siteBytes) printLinks(s cluster.Server, links cluster.Carried) {
	fmt.Fprintf(os.Stderr, "%s, %d bytes: bytes a put from (line) to (column)\n%8s", s.Name, p.size, "")
	for _, name := range sites {
		fmt.Fprintf(os.Stderr, " %8s", name)
	}
	for i, row := range links {
		fmt.Fprintf(os.Stderr, "\n%8s", sites[i])
		for _, n := range row {
			fmt.Fprintf(os.Stderr, " %8.0f", float64(n)/float64(p.puts))
		}
	}
	fmt.Fprintln(os.Stderr)
}
