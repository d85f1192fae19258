{{/* Rules between values, which the schema cannot express. */}}

{{- define "extender.validateValues" -}}
{{- include "extender.validateName" . -}}
{{- include "extender.validateAddress" . -}}
{{- range $value, $labels := dict "commonLabels" .Values.commonLabels "podLabels" .Values.podLabels -}}
{{- range $label := list "app.kubernetes.io/name" "app.kubernetes.io/instance" -}}
{{- if hasKey ($labels | default dict) $label -}}
{{- fail (printf "%s: must not have %s, which selects the pods" $value $label) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- if and (eq .Values.mode "service") .Values.certificates.existingSecret (ne .Values.certificates.source "existing") -}}
{{- fail (printf "certificates.existingSecret: is only used with certificates.source existing, not %s" .Values.certificates.source) -}}
{{- end -}}
{{- if and .Values.plugins.entryPoints (not .Values.plugins.modules) -}}
{{- fail "plugins.entryPoints: needs plugins.modules, which is empty" -}}
{{- end -}}
{{- range $name, $place := .Values.plugins.entryPoints -}}
{{- $module := splitList ":" $place | first -}}
{{- if not (hasKey $.Values.plugins.modules $module) -}}
{{- fail (printf "plugins.entryPoints.%s: plugins.modules has no module %s, only %s" $name $module (keys $.Values.plugins.modules | sortAlpha | join ", ")) -}}
{{- end -}}
{{- end -}}
{{- include "extender.validateExtraArgs" (list "scheduler" .) -}}
{{- include "extender.validateExtraArgs" (list "kubeScheduler" .) -}}
{{- if and (contains `"Coscheduling"` (toJson .Values.scheduler.config)) (not .Values.permissions.coscheduling) -}}
{{- fail "permissions.coscheduling: must be true, because scheduler.config enables the plugin Coscheduling" -}}
{{- end -}}
{{- if eq .Values.mode "beside" -}}
{{- $ports := list (int .Values.extender.port) (int .Values.metrics.port) (int .Values.metrics.extenderPort) -}}
{{- if ne (len (uniq $ports)) 3 -}}
{{- fail (printf "extender.port, metrics.port, metrics.extenderPort: must differ in mode beside, because they are ports of one pod: %v" $ports) -}}
{{- end -}}
{{- include "extender.validateProfiles" (list "kubeScheduler.profiles" .Values.kubeScheduler.profiles .Values.schedulerName) -}}
{{- include "extender.validatePreemption" (list "kubeScheduler.profiles" .Values.kubeScheduler.profiles .Values.permissions.preemption) -}}
{{- end -}}
{{- if eq .Values.mode "standalone" -}}
{{- include "extender.validatePreemption" (list "scheduler.config.profiles" .Values.scheduler.config.profiles .Values.permissions.preemption) -}}
{{- end -}}
{{- if and (ne .Values.mode "standalone") (eq .Values.extender.filterAnswer "best") (not (has "filter" .Values.extender.verbs)) -}}
{{- fail "extender.filterAnswer: best needs the verb filter in extender.verbs" -}}
{{- end -}}
{{- if not (regexMatch "[1-9]" .Values.extender.assumeTimeout) -}}
{{- fail "extender.assumeTimeout: must be greater than 0" -}}
{{- end -}}
{{- include "extender.validateMetrics" . -}}
{{- if ne .Values.mode "standalone" }}{{ include "extender.validateManagedResources" .Values.extender.managedResources }}{{ end -}}
{{- $election := .Values.scheduler.config.leaderElection | default dict -}}
{{- if and (eq .Values.mode "standalone") (gt (int .Values.replicaCount) 1) (eq (toString $election.leaderElect) "false") -}}
{{- fail "scheduler.config.leaderElection.leaderElect: must not be false with more than one replica: each would place the same pods" -}}
{{- end -}}
{{- range $field, $wanted := dict "resourceName" (include "extender.leaseName" .) "resourceNamespace" .Release.Namespace -}}
{{- if and (eq $.Values.mode "standalone") $.Values.rbac.create (ne (get $election $field | default $wanted) $wanted) -}}
{{- fail (printf "scheduler.config.leaderElection.%s: must be %s, the Lease in the role; use the value leaderElection instead" $field $wanted) -}}
{{- end -}}
{{- end -}}
{{- if ne .Values.mode "service" -}}
{{- if and (eq .Values.podSchedulerName .Values.schedulerName) (ne .Values.schedulerName "default-scheduler") -}}
{{- fail (printf "podSchedulerName: must differ from schedulerName (%s): no scheduler would place the first pod" .Values.schedulerName) -}}
{{- end -}}
{{- include "extender.validateProfiles" (list "scheduler.config.profiles" .Values.scheduler.config.profiles .Values.schedulerName) -}}
{{- with .Values.leaderElection -}}
{{- if not (regexMatch "[1-9]" .retryPeriod) -}}
{{- fail "leaderElection.retryPeriod: must be greater than 0" -}}
{{- end -}}
{{- include "extender.validateShorter" (list "renewDeadline" .renewDeadline "leaseDuration" .leaseDuration) -}}
{{- include "extender.validateShorter" (list "retryPeriod" .retryPeriod "renewDeadline" .renewDeadline) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/*
A flag of the chart must not occur a second time: the last one applies, and role, probes and other checks follow the value.
Argument: (list scheduler $).
*/}}
{{- define "extender.validateExtraArgs" -}}
{{- $values := dict "config" (printf "%s.%s" (index . 0) (ternary "config" "profiles" (eq (index . 0) "scheduler"))) -}}
{{- $_ := set $values "feature-gates" "scheduler.featureGates, which the role follows" -}}
{{- $_ := set $values "emulated-version" (ternary "scheduler.emulatedVersion, which the role follows" "" (eq (index . 0) "scheduler")) -}}
{{- $_ := set $values "port" (ternary "extender.port" "" (eq (index . 0) "scheduler")) -}}
{{- $isBeside := and (eq (index . 0) "scheduler") (eq (index . 1).Values.mode "beside") -}}
{{- $_ := set $values "secure-port" (printf "%s, which the probes use" (ternary "metrics.extenderPort" "metrics.port" $isBeside)) -}}
{{- range (get (index . 1).Values (index . 0)).extraArgs -}}
{{- $flag := regexReplaceAll "^--?([^=]*).*$" . "${1}" -}}
{{- $value := hasPrefix "leader-elect" $flag | ternary "leaderElection, which the role follows" (get $values $flag) -}}
{{- if $value -}}
{{- fail (printf "%s.extraArgs: must not have --%s; use the value %s" (index $ 0) $flag $value) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* kube-scheduler does not start with another name than that of an extended resource. Argument: managedResources. */}}
{{- define "extender.validateManagedResources" -}}
{{- $label := "[a-z0-9]([-a-z0-9]*[a-z0-9])?" -}}
{{- $pattern := printf `^%s(\.%s)*/[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$` $label $label -}}
{{- range . -}}
{{- if or (not (regexMatch $pattern .name)) (contains "kubernetes.io/" .name) (hasPrefix "requests." .name) -}}
{{- fail (printf "extender.managedResources: %q is no extended resource; want a name such as example.com/gpu, outside of kubernetes.io" .name) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* The name of the objects must be that of a Service, which began with a letter before Kubernetes 1.36. */}}
{{- define "extender.validateName" -}}
{{- $name := include "extender.fullname" . -}}
{{- if not (regexMatch "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$" $name) -}}
{{- fail (printf "fullnameOverride: the objects would have the name %q; want lower-case letters, digits and -" $name) -}}
{{- end -}}
{{- if and (regexMatch "^[0-9]" $name) (semverCompare "<1.36-0" .Capabilities.KubeVersion.Version) -}}
{{- fail (printf "fullnameOverride: the Service would have the name %s; before Kubernetes 1.36 it must begin with a letter" $name) -}}
{{- end -}}
{{- end -}}

{{/* A Service keeps its cluster IP. Helm would fail after it changed other objects, and then neither roll back nor uninstall them. */}}
{{- define "extender.validateAddress" -}}
{{- if and .Release.IsUpgrade .Values.service.clusterIP -}}
{{- $name := include "extender.fullname" . -}}
{{- $service := lookup "v1" "Service" .Release.Namespace $name | default dict -}}
{{- $address := dig "spec" "clusterIP" .Values.service.clusterIP $service -}}
{{- if ne $address .Values.service.clusterIP -}}
{{- fail (printf "service.clusterIP: the Service %s has the address %s, which cannot be changed to %s; use it, or delete the Service before the upgrade" $name $address .Values.service.clusterIP) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* Prometheus' operator ignores a ServiceMonitor whose timeout is longer than its interval. */}}
{{- define "extender.validateMetrics" -}}
{{- $zero := toDate "2006" "2000" -}}
{{- with .Values.metrics.serviceMonitor -}}
{{- if and .enabled ((dateModify .scrapeTimeout $zero).After (dateModify .interval $zero)) -}}
{{- fail (printf "metrics.serviceMonitor.scrapeTimeout: must not be longer than metrics.serviceMonitor.interval (%s), not %s" .interval .scrapeTimeout) -}}
{{- end -}}
{{- end -}}
{{- $alerts := list -}}
{{- range .Files.Get "files/alerts.yaml" | fromYamlArray }}{{- $alerts = append $alerts .alert }}{{- end -}}
{{- range .Values.metrics.prometheusRule.disabled -}}
{{- if not (has . $alerts) -}}
{{- fail (printf "metrics.prometheusRule.disabled: there is no alert %s; want any of %s" . (join ", " $alerts)) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* One of the profiles must have the name `schedulerName`. Argument: (list valueName profiles schedulerName). */}}
{{- define "extender.validateProfiles" -}}
{{- $wanted := index . 2 -}}
{{- $names := list -}}
{{- range index . 1 }}{{- $names = append $names (default "default-scheduler" .schedulerName) }}{{- end -}}
{{- if and $names (not (has $wanted $names)) -}}
{{- fail (printf "%s: must have a profile for schedulerName (%s); has %s" (index . 0) $wanted (join ", " $names)) -}}
{{- end -}}
{{- end -}}

{{/*
Without the permission to preempt, the profiles must disable DefaultPreemption, as the chart's profile does: pods would be
nominated, and their victims never deleted. Argument: (list valueName profiles permission).
*/}}
{{- define "extender.validatePreemption" -}}
{{- $value := index . 0 -}}
{{- if not (index . 2) -}}
{{- range $profile := index . 1 -}}
{{- $enabled := list -}}
{{- $disabled := list -}}
{{- range $point := list "multiPoint" "postFilter" -}}
{{- $plugins := get ($profile.plugins | default dict) $point | default dict -}}
{{- range $plugins.enabled }}{{- $enabled = append $enabled .name }}{{- end -}}
{{- range $plugins.disabled }}{{- $disabled = append $disabled .name }}{{- end -}}
{{- end -}}
{{- if or (has "DefaultPreemption" $enabled) (not (or (has "DefaultPreemption" $disabled) (has "*" $disabled))) -}}
{{- fail (printf "permissions.preemption: must be true, because profile %s of %s enables DefaultPreemption; or disable it in plugins.postFilter" (default "default-scheduler" $profile.schedulerName) $value) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* The first duration must be shorter than the second. Argument: (list valueName duration valueName duration). */}}
{{- define "extender.validateShorter" -}}
{{- $zero := toDate "2006" "2000" -}}
{{- if not ((dateModify (index . 3) $zero).After (dateModify (index . 1) $zero)) -}}
{{- fail (printf "leaderElection.%s: must be less than leaderElection.%s (%s), not %s" (index . 0) (index . 2) (index . 3) (index . 1)) -}}
{{- end -}}
{{- end -}}
