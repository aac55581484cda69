package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/quorate/quorate/test/bench/cluster"
	"github.com/quorate/quorate/test/bench/k8s"
	"github.com/quorate/quorate/test/bench/load"
)

const (
	bytesIdle   = 5 * time.Second
	bytesSettle = 4 * time.Second // members measure how far they are from each other, and learn who proposes
	bytesWarm   = 100             // puts that do not count
	bytesDrain  = time.Second     // after the last put, for what it makes the members tell each other
)

// bytesPlan is what the flags of bytes say.
type bytesPlan struct {
	servers []cluster.Server
	dir     string
	sizes   []int
	rate    float64
	puts    int
	from    []int // sites that write
	matrix  bool
}

// siteBytes measures what goes over the links between five sites for a put.
func siteBytes(ctx context.Context, arguments []string) error {
	p, err := parseBytes(arguments)
	if err != nil {
		return err
	}
	fmt.Printf("five sites, led from %s; %d puts from %s in turn, %.0f a second; bytes of TCP's payload; %s\n\n",
		sites[leadingSite], p.puts, p.wherefrom(), p.rate, cluster.Machine())
	table := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "server\tvalues\tbytes a put\tof the base\tidle bytes/s\twithout idle\tbusiest link\tp50 ms\t")
	base := map[int]float64{}
	for _, size := range p.sizes {
		for _, s := range p.servers {
			if err := p.measure(ctx, s, size, table, base); err != nil {
				return errors.Join(fmt.Errorf("%s, %d bytes: %w", s.Name, size, err), table.Flush())
			}
		}
	}
	return table.Flush()
}

func parseBytes(arguments []string) (*bytesPlan, error) {
	p := &bytesPlan{}
	var sizes, from string
	flags := flag.NewFlagSet("bytes", flag.ContinueOnError)
	cluster.ServerFlag(flags, &p.servers)
	flags.Func("flags", "NAME=FLAG,FLAG for the members of one server", serverFlags(&p.servers))
	flags.StringVar(&p.dir, "dir", "", "where data lies while a cluster runs")
	flags.StringVar(&sizes, "sizes", "256,10240",
		"bytes of a value: random ones up to 1,024, above that fields as protobuf encodes a pod of Kubernetes")
	flags.Float64Var(&p.rate, "rate", 50, "puts a second, of all sites together")
	flags.IntVar(&p.puts, "puts", 500, "puts that count")
	flags.StringVar(&from, "from", strings.Join(sites, ","), "sites that write, with commas between")
	flags.BoolVar(&p.matrix, "links", false, "print what each link carried for a put, too")
	if err := flags.Parse(arguments); err != nil {
		return nil, err
	}
	for text := range strings.SplitSeq(sizes, ",") {
		size, err := strconv.Atoi(text)
		if err != nil || size < k8s.LeastValue || size > 1<<20 {
			return nil, fmt.Errorf("bytes: --sizes: %q is no size from %d to %d", text, k8s.LeastValue, 1<<20)
		}
		p.sizes = append(p.sizes, size)
	}
	for name := range strings.SplitSeq(from, ",") {
		i := slices.Index(sites, name)
		if i < 0 {
			return nil, fmt.Errorf("bytes: --from: %q is none of %s", name, strings.Join(sites, ", "))
		}
		p.from = append(p.from, i)
	}
	if len(p.servers) == 0 || p.dir == "" || p.rate <= 0 || p.puts < 1 || flags.NArg() > 0 {
		return nil, errors.New("bytes: want --server and --dir, a rate and puts above zero, and nothing but flags")
	}
	return p, nil
}

func (p *bytesPlan) measure(
	ctx context.Context, s cluster.Server, size int, table *tabwriter.Writer, base map[int]float64,
) (err error) {
	l, err := startLinked(ctx, s, p.dir, len(sites), func(from, to int) time.Duration {
		return time.Duration(siteTrips[from][to]) * time.Millisecond / 2
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.remove()) }()
	if err := leadFrom(ctx, l.Cluster, leadingSite); err != nil {
		return err
	}
	cluster.Pause(ctx, bytesSettle)
	var clients []*clientv3.Client
	defer func() {
		for _, c := range clients {
			_ = c.Close() // everything was answered
		}
	}()
	for _, i := range p.from {
		c, err := cluster.Connect(l.Members[i].ClientAddr)
		if err != nil {
			return err
		}
		clients = append(clients, c)
	}
	value := valuesOf(size)
	if _, err := p.put(ctx, clients, bytesWarm, value); err != nil {
		return err
	}
	cluster.Pause(ctx, bytesDrain)
	before := l.carried()
	cluster.Pause(ctx, bytesIdle)
	_, idle := since(l.carried(), before)
	before = l.carried()
	begun := time.Now()
	took, err := p.put(ctx, clients, p.puts, value)
	if err != nil {
		return err
	}
	cluster.Pause(ctx, bytesDrain)
	links, sum := since(l.carried(), before)
	idlePerSecond := float64(idle) / bytesIdle.Seconds()
	each := float64(sum) / float64(p.puts)
	if base[size] == 0 {
		base[size] = each
	}
	busiest := int64(0)
	for _, row := range links {
		for _, n := range row {
			busiest = max(busiest, n)
		}
	}
	fmt.Fprintf(table, "%s\t%d\t%.0f\t%.2f\t%.0f\t%.0f\t%.0f\t%.0f\t\n", s.Name, size, each, each/base[size], idlePerSecond,
		each-idlePerSecond*time.Since(begun).Seconds()/float64(p.puts), float64(busiest)/float64(p.puts),
		float64(took.Milliseconds()))
	if p.matrix {
		p.printLinks(s, size, links)
	}
	return nil
}

// put begins puts at the rate, in turn from each site, and returns the median of their times.
func (p *bytesPlan) put(
	ctx context.Context, clients []*clientv3.Client, n int, value func(number int) string,
) (median time.Duration, err error) {
	var group sync.WaitGroup
	times, failures := make([]time.Duration, n), make([]error, n)
	pace := time.NewTicker(time.Duration(float64(time.Second) / p.rate))
	defer pace.Stop()
	for i := 0; i < n && ctx.Err() == nil; i++ {
		text := value(i)
		group.Go(func() {
			limited, cancel := context.WithTimeout(ctx, load.OperationTimeout)
			defer cancel()
			begun := time.Now()
			_, failures[i] = clients[i%len(clients)].Put(limited, k8sPodKey(i), text)
			times[i] = time.Since(begun)
		})
		<-pace.C
	}
	group.Wait()
	return medianOf(times), errors.Join(append(failures, ctx.Err())...)
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

func (p *bytesPlan) printLinks(s cluster.Server, size int, links [][]int64) {
	fmt.Fprintf(os.Stderr, "%s, %d bytes: bytes a put from (line) to (column)\n%8s", s.Name, size, "")
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

func (p *bytesPlan) wherefrom() string {
	if len(p.from) == len(sites) {
		return "all sites"
	}
	names := make([]string, len(p.from))
	for i, site := range p.from {
		names[i] = sites[site]
	}
	return strings.Join(names, ", ")
}
