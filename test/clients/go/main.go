// Command go takes etcd's Go client through what test/clients asks of each client.
package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
)

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "failed:", err)
		os.Exit(1)
	}
}

func connect(user, password string) (*clientv3.Client, error) {
	raw, err := os.ReadFile(os.Getenv("CA"))
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(raw)
	return clientv3.New(clientv3.Config{
		Endpoints: []string{"https://" + os.Getenv("ENDPOINT")}, DialTimeout: 5 * time.Second,
		TLS: &tls.Config{RootCAs: roots}, Username: user, Password: password,
	})
}

func run(ctx context.Context) error {
	client, err := connect("app", "apw")
	if err != nil {
		return err
	}
	defer client.Close()
	for _, step := range []struct {
		name string
		do   func(context.Context, *clientv3.Client) error
	}{
		{"put", put}, {"txn", txn}, {"watch", watch}, {"lease", lease}, {"lock", lock}, {"auth", auth},
	} {
		if err := step.do(ctx, client); err != nil {
			return fmt.Errorf("%s: %w", step.name, err)
		}
		fmt.Println("ok", step.name)
	}
	fmt.Println("ok tls")
	return nil
}

var errWrong = errors.New("the answer is wrong")

func put(ctx context.Context, c *clientv3.Client) error {
	if _, err := c.Put(ctx, "app/go", "1"); err != nil {
		return err
	}
	got, err := c.Get(ctx, "app/go")
	if err == nil && (len(got.Kvs) != 1 || string(got.Kvs[0].Value) != "1") {
		err = errWrong
	}
	return err
}

func txn(ctx context.Context, c *clientv3.Client) error {
	for _, want := range []bool{true, false} {
		isOne := clientv3.Compare(clientv3.Value("app/go"), "=", "1")
		answer, err := c.Txn(ctx).If(isOne).Then(clientv3.OpPut("app/go", "2")).Commit()
		if err != nil {
			return err
		}
		if answer.Succeeded != want {
			return errWrong
		}
	}
	return nil
}

func watch(ctx context.Context, c *clientv3.Client) error {
	events := c.Watch(ctx, "app/go", clientv3.WithCreatedNotify())
	<-events
	if _, err := c.Put(ctx, "app/go", "3"); err != nil {
		return err
	}
	answer := <-events
	if err := answer.Err(); err != nil {
		return err
	}
	if len(answer.Events) != 1 || string(answer.Events[0].Kv.Value) != "3" {
		return errWrong
	}
	return nil
}

func lease(ctx context.Context, c *clientv3.Client) error {
	granted, err := c.Grant(ctx, 30)
	if err != nil {
		return err
	}
	if _, err := c.Put(ctx, "app/leased", "1", clientv3.WithLease(granted.ID)); err != nil {
		return err
	}
	if _, err := c.KeepAliveOnce(ctx, granted.ID); err != nil {
		return err
	}
	if _, err := c.Revoke(ctx, granted.ID); err != nil {
		return err
	}
	got, err := c.Get(ctx, "app/leased")
	if err == nil && len(got.Kvs) != 0 {
		err = errWrong
	}
	return err
}

func lock(ctx context.Context, c *clientv3.Client) error {
	session, err := concurrency.NewSession(c, concurrency.WithTTL(10))
	if err != nil {
		return err
	}
	defer session.Close()
	mutex := concurrency.NewMutex(session, "app/lock")
	if err := mutex.Lock(ctx); err != nil {
		return err
	}
	return mutex.Unlock(ctx)
}

func auth(ctx context.Context, c *clientv3.Client) error {
	if _, err := c.Put(ctx, "other", "1"); !errors.Is(err, rpctypes.ErrPermissionDenied) {
		return fmt.Errorf("a key that is not permitted: %w", errors.Join(errWrong, err))
	}
	if wrong, err := connect("app", "wrong"); err == nil {
		defer wrong.Close()
		if _, err := wrong.Get(ctx, "app/go"); err == nil {
			return fmt.Errorf("a wrong password: %w", errWrong)
		}
	}
	return nil
}
