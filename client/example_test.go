package client_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/quorate/quorate/client"
)

// A lock that is taken by a transaction: a client that is told that it succeeded has it, and none is told wrong because an
// answer was lost and the transaction sent again.
func Example() {
	c, err := client.New(client.Config{Endpoints: []string{"http://127.0.0.1:2379"}})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	taken, err := c.Txn(context.Background()).
		If(clientv3.Compare(clientv3.CreateRevision("lock"), "=", 0)).
		Then(clientv3.OpPut("lock", "me")).
		Commit()
	var doubt *client.InDoubtError
	switch {
	case errors.As(err, &doubt):
		fmt.Println("read the lock: it may be mine", err)
	case err != nil:
		fmt.Println("nothing happened", err)
	default:
		fmt.Println("mine:", taken.Succeeded)
	}
}
