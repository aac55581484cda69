// Package quoratepb is the native API of Quorate, as generated from the .proto files beside it: what etcd's API has no
// words for. `make api` generates it anew.
package quoratepb
