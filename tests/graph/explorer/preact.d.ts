// The types of preact as the explorer uses it: htm makes nodes of text, so those of components are not checked.
export function html(strings: TemplateStringsArray, ...values: unknown[]): any;
export function render(node: unknown, parent: Element): void;
export function useState<T>(initial: T | (() => T)): [T, (value: T | ((old: T) => T)) => void];
export function useEffect(effect: () => void | (() => void), inputs?: unknown[]): void;
export function useRef<T>(initial: T): { current: T };
export function useMemo<T>(make: () => T, inputs: unknown[]): T;
export function useCallback<T>(call: T, inputs: unknown[]): T;
