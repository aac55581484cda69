//go:build hold

// Package compat holds the versions of etcd's suites and tools that the script next to it builds. It is never built
// itself: the imports only keep the requirements in go.mod, which is apart from the product's.
package compat

import (
	_ "go.etcd.io/etcd/tests/v3/framework/e2e"
	_ "go.etcd.io/etcd/tests/v3/framework/integration"
	_ "go.etcd.io/etcd/tests/v3/robustness/failpoint"
)
