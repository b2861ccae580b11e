// SPDX-License-Identifier: Apache-2.0

// The programs of a Kubernetes in one, and a registry of images that keeps them in memory: which one it is, its name
// says.
package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"

	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/spf13/cobra"
	"k8s.io/component-base/cli"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	manager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app"
)

func main() {
	var command *cobra.Command
	switch name := filepath.Base(os.Args[0]); name {
	case "kube-apiserver":
		command = apiserver.NewAPIServerCommand()
	case "kube-controller-manager":
		command = manager.NewControllerManagerCommand()
	case "kube-scheduler":
		command = scheduler.NewSchedulerCommand()
	case "kubelet":
		command = kubelet.NewKubeletCommand(context.Background())
	case "registry":
		fmt.Fprintln(os.Stderr, http.ListenAndServe(os.Args[1], registry.New()))
		os.Exit(1)
	default:
		fmt.Fprintln(os.Stderr, "not a name of a Kubernetes program:", name)
		os.Exit(2)
	}
	os.Exit(cli.Run(command))
}
