package rpc_test

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/member/proposals"
)

// BenchmarkRoad measures the cost of a unary call in the server's transport and services alone: nothing is stored, and answers
// come as a member gives them, from one goroutine and several at once. Clients are in a process of their own, each on a
// connection of its own with one call at a time, but for the last row, where they share one. Counts (of allocations, of calls
// to read and write, of context switches) depend on the machine's speed far less than times do.
func BenchmarkRoad(b *testing.B) {
	for _, row := range []struct{ clients, conns int }{{1, 1}, {64, 64}, {256, 256}, {64, 1}} {
		for _, method := range []string{"put", "range"} {
			b.Run(fmt.Sprintf("%s/clients%d/conns%d", method, row.clients, row.conns), func(b *testing.B) {
				backend := newAnsweringBackend(b)
				s := serve(b, backend, nil)
				load := startLoad(b, s.addr, method, row.clients, row.conns)
				load.run(b, row.clients*20) // connections, pools and stacks have grown
				b.ReportAllocs()
				begun := readUsage(b)
				b.ResetTimer()
				client := load.run(b, b.N)
				b.StopTimer()
				readUsage(b).report(b, begun)
				b.ReportMetric(client, "client-us/op")
			})
		}
	}
}

// usage is the resource usage of this process.
type usage struct {
	micros, switches, reads, writes float64
}

func readUsage(b *testing.B) usage {
	b.Helper()
	var u usage
	u.micros, u.switches = processorTime(b)
	io, err := os.ReadFile("/proc/self/io") // only Linux counts them
	if err != nil {
		return u
	}
	for line := range strings.Lines(string(io)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
		n, err := strconv.ParseFloat(value, 64)
		if err != nil {
			b.Fatal(err)
		}
		switch name {
		case "syscr":
			u.reads = n
		case "syscw":
			u.writes = n
		}
	}
	return u
}

func processorTime(b testing.TB) (micros, switches float64) {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		b.Fatal(err)
	}
	return float64(used.Utime.Nano()+used.Stime.Nano()) / 1e3, float64(used.Nvcsw)
}

func (u usage) report(b *testing.B, begun usage) {
	per := func(now, before float64, unit string) { b.ReportMetric((now-before)/float64(b.N), unit) }
	per(u.micros, begun.micros, "cpu-us/op")
	per(u.switches, begun.switches, "switches/op")
	per(u.reads, begun.reads, "reads/op")
	per(u.writes, begun.writes, "writes/op")
}

// syncTime is the duration of a commit.
const syncTime = time.Millisecond

// answeringBackend answers proposals without executing them, as a member does: one goroutine answers, after each commit, all
// that came before it.
type answeringBackend struct {
	*machineBackend
	waiting  chan *answered
	revision kv.Revision
}

type answered struct {
	payload []byte
	done    chan kv.Result
	then    func(kv.Result, error)
}

func (a *answeringBackend) Prompt() bool { return true }

func (a *answeringBackend) PromptFor(*kv.Command) bool { return true }

func (a *answeringBackend) ProposeAsync(command *kv.Command, done proposals.Completion) (func() bool, error) {
	a.waiting <- &answered{payload: command.Append(nil), then: done.Complete}
	return func() bool { return false }, nil
}

func (a *answeringBackend) ReadAsync(done proposals.Completion) (func() bool, error) {
	a.waiting <- &answered{then: done.Complete}
	return func() bool { return false }, nil
}

func newAnsweringBackend(b *testing.B) *answeringBackend {
	backend := &answeringBackend{machineBackend: newMachineBackend(b), waiting: make(chan *answered, 4096)}
	put := &kv.PutOp{Key: []byte("bench/key"), Value: bytes.Repeat([]byte("v"), 256)}
	if _, err := backend.machineBackend.Propose(b.Context(), &kv.Command{Put: put}); err != nil {
		b.Fatal(err)
	}
	stop := make(chan struct{})
	var running sync.WaitGroup
	running.Go(func() { backend.answer(stop) })
	b.Cleanup(func() {
		close(stop)
		running.Wait()
	})
	return backend
}

// Propose implements rpc.Backend.
func (a *answeringBackend) Propose(_ context.Context, command *kv.Command) (kv.Result, error) {
	one := &answered{payload: command.Append(nil), done: make(chan kv.Result, 1)}
	a.waiting <- one
	return <-one.done, nil
}

// ReadIndex implements rpc.Backend.
func (a *answeringBackend) ReadIndex(context.Context) error {
	one := &answered{done: make(chan kv.Result, 1)}
	a.waiting <- one
	<-one.done
	return nil
}

func (a *answeringBackend) answer(stop <-chan struct{}) {
	commits := time.NewTicker(syncTime)
	defer commits.Stop()
	for {
		select {
		case <-commits.C:
		case <-stop:
			return
		}
		for range len(a.waiting) {
			one := <-a.waiting
			a.revision++
			if one.then != nil {
				one.then(kv.Result{Revision: a.revision, Put: &kv.PutResult{}}, nil)
				continue
			}
			one.done <- kv.Result{Revision: a.revision, Put: &kv.PutResult{}}
		}
	}
}

// The process of the clients is this binary with roadLoad in its environment. It reads a line with a number, makes so many
// calls, and writes a line with the processor time of each call in microseconds.
const roadLoad = "QUORATE_ROAD_LOAD"

// noUser stands in roadLoad for no user.
const noUser = "-"

type load struct {
	in  *os.File
	out *os.File
}

func startLoad(b *testing.B, addr, method string, clients, conns int) *load {
	b.Helper()
	return startLoadAs(b, "", addr, method, clients, conns)
}

// startLoadAs starts clients that bear the token of a user, unless that is empty.
func startLoadAs(b *testing.B, user, addr, method string, clients, conns int) *load {
	b.Helper()
	theirIn, in, err := os.Pipe()
	if err != nil {
		b.Fatal(err)
	}
	out, theirOut, err := os.Pipe()
	if err != nil {
		b.Fatal(err)
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestRoadLoad$")
	cmd.Env = append(os.Environ(), "GOGC=100", fmt.Sprintf("%s=%s %s %d %d %t %s", roadLoad, addr, method, clients, conns, *encrypted,
		cmp.Or(user, noUser)))
	cmd.Stdin, cmd.Stdout, cmd.Stderr = theirIn, theirOut, os.Stderr
	if err := errors.Join(cmd.Start(), theirIn.Close(), theirOut.Close()); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := errors.Join(in.Close(), cmd.Wait(), out.Close()); err != nil {
			b.Errorf("the clients: %v", err)
		}
	})
	return &load{in: in, out: out}
}

// run lets the process make calls, and returns their average cost for the clients.
func (l *load) run(b *testing.B, calls int) (micros float64) {
	b.Helper()
	if _, err := fmt.Fprintln(l.in, calls); err != nil {
		b.Fatal(err)
	}
	if _, err := fmt.Fscanln(l.out, &micros); err != nil {
		b.Fatalf("the clients answered nothing: %v", err)
	}
	return micros
}

// TestRoadLoad is the process of the clients of BenchmarkRoad.
func TestRoadLoad(t *testing.T) {
	asked := os.Getenv(roadLoad)
	if asked == "" {
		t.Skip("only BenchmarkRoad starts it")
	}
	var addr, method, user string
	var clients, conns int
	var secure bool
	if _, err := fmt.Sscan(asked, &addr, &method, &clients, &conns, &secure, &user); err != nil {
		t.Fatal(err)
	}
	var options []grpc.DialOption
	if user != noUser {
		token, err := tokenOf(addr, user)
		if err != nil {
			t.Fatal(err)
		}
		options = append(options, token)
	}
	transport := insecure.NewCredentials()
	if secure {
		transport = credentials.NewTLS(&tls.Config{InsecureSkipVerify: true})
	}
	var call []func() error
	for range conns {
		conn, err := grpc.NewClient("passthrough:///"+addr, append(options, grpc.WithTransportCredentials(transport))...)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		one := callOf(conn, method)
		if make, found := memberCalls[method]; found {
			if one, err = make(conn); err != nil {
				t.Fatal(err)
			}
		}
		call = append(call, one)
	}
	for {
		var calls int
		if _, err := fmt.Scanln(&calls); err != nil {
			return // the benchmark has ended
		}
		before, _ := processorTime(t)
		var left atomic.Int64
		left.Store(int64(calls))
		var running sync.WaitGroup
		for i := range clients {
			running.Go(func() {
				for left.Add(-1) >= 0 {
					if err := call[i%conns](); err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		running.Wait()
		after, _ := processorTime(t)
		fmt.Println((after - before) / float64(calls))
	}
}

func callOf(conn *grpc.ClientConn, method string) func() error {
	kvc := pb.NewKVClient(conn)
	key, value := []byte("bench/key"), bytes.Repeat([]byte("v"), 256)
	if method == "range" {
		return func() error {
			_, err := kvc.Range(context.Background(), &pb.RangeRequest{Key: key})
			return err
		}
	}
	return func() error {
		_, err := kvc.Put(context.Background(), &pb.PutRequest{Key: key, Value: value})
		return err
	}
}
