module go.etcd.io/etcd/server/v3

go 1.25

require (
	go.etcd.io/etcd/client/pkg/v3 v3.6.4
	go.uber.org/zap v1.27.0
)

require (
	go.uber.org/multierr v1.11.0 // indirect
	golang.org/x/sys v0.31.0 // indirect
)
