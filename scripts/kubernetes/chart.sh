#!/usr/bin/env bash
# Usage: scripts/kubernetes/chart.sh PACKAGES [CHART]
#
# Lints the Helm chart (the folder, or a package from make release) with helm,
# renders it with several sets of values, checks the results with check.mjs, and
# that the defaults render to nize.yaml. Invalid values must be refused.
# helm is built from the module in this folder, which takes some minutes the first time.
set -euo pipefail
packages=$(realpath "$1")
cd "$(dirname "$0")"
chart=$(realpath "${2:-chart}")
work=$(mktemp -d "${TMPDIR:-/tmp}/nize-chart.XXXXXX")
trap 'rm -rf "$work"' EXIT
fail() { echo "chart: FAILED: $*" >&2; exit 1; }
CGO_ENABLED=0 GOFLAGS=-trimpath go build -o "$work/helm" helm.sh/helm/v3/cmd/helm
export HELM_CACHE_HOME=$work/cache HELM_CONFIG_HOME=$work/config HELM_DATA_HOME=$work/data HELM_NO_PLUGINS=1
needed=(--set host=nize.example.com --set image.repository=registry.example.com/nize --set image.tag=0.1.0)
render() { # NAME RELEASE VALUES…
	local to=$1 release=$2
	shift 2
	"$work/helm" template "$release" "$chart" --kube-version 1.31.0 "${needed[@]}" "$@" >"$work/$to.yaml"
}

"$work/helm" lint --strict "$chart" "${needed[@]}" >"$work/lint" 2>&1 || { cat "$work/lint" >&2; fail lint; }
render defaults nize
node check.mjs "$packages" "$work/defaults.yaml" --like nize.yaml
render small team --set database.enabled=false --set database.new=true --set storage.className=fast --set-string 'config=log.level = "debug"'
node check.mjs "$packages" "$work/small.yaml"
grep -q 'log.level = "debug"' "$work/small.yaml" || fail "config is not in nized.toml"
grep -q 'NIZE_DATABASE\|NIZE_ADVERTISE' "$work/small.yaml" && fail "one nized on a volume has a database server"
render full "$(printf 'a%.0s' $(seq 53))" --set 'image.pullSecrets={one,two}' --set ingress.className=nginx --set ingress.tlsSecret= --set 'tolerations[0].operator=Exists' \
	--set nodeSelector.disk=ssd --set 'trustedProxies={10.0.0.0/8,fd00::/8}' --set secret=other
node check.mjs "$packages" "$work/full.yaml"
render bare nize --set ingress.enabled=false --set database.enabled=false --set storage.existingClaim=mine
grep -q 'claimName: mine' "$work/bare.yaml" || fail "the claim is not used"
grep -q 'kind: Ingress\|kind: PersistentVolumeClaim' "$work/bare.yaml" && fail "what was switched off is there"
for wrong in host= host=https://nize.example.com image.repository= replicas=0 replicas=many hosts=x database.enable=false storage.size=5 secret= 'trustedProxies={all}'; do
	! render wrong nize --set "$wrong" 2>"$work/why" || fail "$wrong is taken"
	grep -q 'schema' "$work/why" || { cat "$work/why" >&2; fail "$wrong is refused for another reason"; }
done
echo "chart: helm $("$work/helm" version --template '{{.Version}}') finds nothing, the manifests fit, and values that make no sense are refused"
