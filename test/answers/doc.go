// Package answers asks a server what clients get wrong, and compares its answers with those of etcd 3.7.3: the code, the
// words, and the message where there is one.
//
// It has no code but tests. testdata/requests.txt is the table: one request a line, with its name, its method, and its
// messages in protobuf's JSON. testdata/etcd.txt has what a running etcd 3.7.3 answered to them, in that order, on an
// empty store, and testdata/meant.txt the rows where Quorate answers differently on purpose, with the reason. A row there
// that is answered as etcd does fails, too: the list is what docs/compatibility.md promises.
// Directory random has a command that compares answers to requests which are drawn.
//
//	go test ./test/answers                              asks a member of this repository
//	go test ./test/answers -endpoint 127.0.0.1:2379     asks that server, a fresh cluster of one
//	go test ./test/answers -endpoint ... -rewrite       writes testdata/etcd.txt anew from that server's answers
package answers
