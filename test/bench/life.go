package main

import (
	"github.com/quorate/quorate/test/bench/cluster"
	"github.com/quorate/quorate/test/bench/figures"
	"github.com/quorate/quorate/test/bench/load"

	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/quorate/quorate/test/bench/k8s"
)

// life measures what puts cost from the call until the versions that they wrote are deleted again.
func life(f *flags) func() ([]trial, error) {
	var loads []lifeLoad
	f.each("load", "SIZE:KEYS:PUTS, so many puts of values of a size over so many keys; repeat it (256:10000:100000 and "+
		"10240:2000:20000)", func(text string) error {
		l, err := parseLoad(text)
		loads = append(loads, l)
		return err
	})
	values := f.choice("values", "compressible", "compressible, as protobuf objects are, or random", "compressible", "random")
	clients := f.number("clients", "32", "closed-loop clients", 1, math.MaxInt)
	compactions := f.number("compactions", "8", "compactions of history during the puts", 1, math.MaxInt)
	return func() (all []trial, err error) {
		if len(loads) == 0 {
			loads = []lifeLoad{{256, 10_000, 100_000}, {10 << 10, 2000, 20_000}}
		}
		for _, l := range loads {
			all = append(all, trial{name: l.String(), do: func(ctx context.Context, b *bed) ([]figures.Row, error) {
				row, err := l.measure(ctx, b, *clients, *compactions, *values == "random")
				return []figures.Row{row}, err
			}})
		}
		return all, nil
	}
}

// measure does one load on a fresh cluster.
func (l lifeLoad) measure(
	ctx context.Context, b *bed, clients, compactions int, random bool,
) (f figures.Row, err error) {
	f = figures.NewRow(l.String())
	workers, err := load.Open(ctx, b.Cluster, clients)
	if err != nil {
		return f, err
	}
	defer func() { err = errors.Join(err, load.Close(workers)) }()
	run := newLifeRun(b.Cluster, workers, l, random)
	if err := run.fill(ctx); err != nil {
		return f, err
	}
	if err := b.Settle(ctx); err != nil {
		return f, err
	}
	meters := b.Meter(b.dir)
	meters.Open()
	took, err := run.puts(ctx, compactions)
	if err == nil {
		err = run.forgetAll(ctx)
	}
	if err == nil {
		err = b.Settle(ctx)
	}
	if err != nil {
		return f, err
	}
	meters.Close()
	meters.Charge(&f, float64(l.puts))
	f.Set(figures.PerSecond, float64(l.puts)/took.Seconds())
	f.Set(figures.MedianMillis, figures.Millis(run.times.Quantile(0.50)))
	f.Set(figures.P99Millis, figures.Millis(run.times.Quantile(0.99)))
	f.Set(figures.MaxMillis, figures.Millis(run.times.Longest()))
	if device := f.Values[figures.DeviceMiB]; !math.IsNaN(device) {
		f.Set(figures.DeviceBytes, device*(1<<20)/float64(l.puts))
	}
	f.Set(figures.LowestSecond, run.seconds.lowest())
	fmt.Printf("%s %s, %s: puts in each second, * where a compaction began:\n  %s\n", time.Now().Format(time.TimeOnly),
		b.Server.Name, l, &run.seconds)
	parts := meters.Parts(b.Server.Name+", "+l.String(), float64(l.puts))
	return f, cluster.PrintParts(os.Stdout, []cluster.WrittenParts{parts})
}

func parseLoad(text string) (l lifeLoad, err error) {
	var numbers [3]int
	fields := strings.Split(text, ":")
	for i := range fields {
		n, err := strconv.Atoi(fields[i])
		if len(fields) != len(numbers) || err != nil || n < 1 {
			return l, errors.New("want SIZE:KEYS:PUTS")
		}
		numbers[i] = n
	}
	l = lifeLoad{numbers[0], numbers[1], numbers[2]}
	if l.size < k8s.LeastValue || l.size > mostPod {
		return l, fmt.Errorf("want values of %d to %d bytes", k8s.LeastValue, mostPod)
	}
	return l, nil
}
