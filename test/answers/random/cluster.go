package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
)

func build(path string) error {
	command := exec.Command("go", "build", "-o", path, "./cmd/quorate")
	command.Stderr = os.Stderr
	return command.Run()
}

// cluster is the members of one program.
type cluster struct {
	processes []*exec.Cmd
	conns     []*grpc.ClientConn
	streams   []*watchStream
	tokens    map[string]string
}

// start starts members and waits until each of them has answered a linearizable read.
func start(program, dir string, members int) (*cluster, error) {
	c := &cluster{tokens: map[string]string{}}
	clients, peers := make([]string, members), make([]string, members)
	var all []string
	for i := range members {
		var err error
		if clients[i], err = freeAddress(); err != nil {
			return c, err
		}
		if peers[i], err = freeAddress(); err != nil {
			return c, err
		}
		all = append(all, fmt.Sprintf("m%d=http://%s", i, peers[i]))
	}
	for i := range members {
		data := filepath.Join(dir, fmt.Sprint("m", i))
		if err := os.MkdirAll(data, 0o700); err != nil {
			return c, err
		}
		log, err := os.Create(data + ".log")
		if err != nil {
			return c, err
		}
		command := exec.Command(program, "--name", fmt.Sprint("m", i), "--data-dir", data,
			"--listen-client-urls", "http://"+clients[i], "--advertise-client-urls", "http://"+clients[i],
			"--listen-peer-urls", "http://"+peers[i], "--initial-advertise-peer-urls", "http://"+peers[i],
			"--initial-cluster", strings.Join(all, ","))
		command.Stdout, command.Stderr = log, log
		if err = command.Start(); err != nil {
			return c, err
		}
		c.processes = append(c.processes, command)
	}
	for _, address := range clients {
		conn, err := grpc.NewClient("passthrough:///"+address, grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			return c, err
		}
		c.conns = append(c.conns, conn)
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		_, err = pb.NewKVClient(conn).Range(ctx, &pb.RangeRequest{Key: []byte("ready")}, grpc.WaitForReady(true))
		cancel()
		if err != nil {
			return c, fmt.Errorf("%s at %s does not start: %w", program, address, err)
		}
	}
	return c, nil
}

func (c *cluster) stop() {
	for _, conn := range c.conns {
		_ = conn.Close()
	}
	for _, process := range c.processes {
		_ = process.Process.Kill()
		_ = process.Wait()
	}
}

func freeAddress() (string, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer listener.Close()
	return listener.Addr().String(), nil
}

// putLast writes a key that all watches which live have in their range.
func (c *cluster) putLast(ctx context.Context) (int64, error) {
	answer, err := pb.NewKVClient(c.conns[0]).Put(c.as(ctx, "root"), &pb.PutRequest{Key: []byte(lastKey)})
	return answer.GetHeader().GetRevision(), err
}

// as adds the token of a user, if users are on.
func (c *cluster) as(ctx context.Context, user string) context.Context {
	if token := c.tokens[user]; token != "" {
		return metadata.AppendToOutgoingContext(ctx, "token", token)
	}
	return ctx
}
